"""Prefill and decode in two processes: the same answers as one process gives, also when either is killed."""
import json
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "models/default"
OPTIONS = ["--max-model-len", "512", "--max-num-seqs", "16", "--threads", "1", "--kv-cache-memory", "64MiB"]
TEXT = "a table lamp broke and the market was late again but the price of the river paper was fair "


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def decode_instance(port):
    return SkeinServer(MODEL, "--role", "decode", "--handover-listen", f"127.0.0.1:{port}", *OPTIONS)


def prefill_instance(port):
    return SkeinServer(MODEL, "--role", "prefill", "--decode-peer", f"127.0.0.1:{port}", *OPTIONS)


def body(i, max_tokens=150):
    return {"prompt": f"{i} {TEXT * (1 + i % 3)}", "max_tokens": max_tokens, "ignore_eos": True, "seed": i, "temperature": 0.8,
            "logprobs": 2, "n": 2 if i % 4 == 0 else 1}


def complete(url, request, timeout_s=120):
    data = json.dumps(request).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", data, {"Content-Type": "application/json"}), timeout=timeout_s) as answer:
        return [(choice["text"], choice["logprobs"], choice["finish_reason"]) for choice in json.load(answer)["choices"]]


def together(url, count):
    """The answers to so many requests at once; an exception in place of one that failed."""
    answers = [None] * count

    def ask(i):
        try:
            answers[i] = complete(url, body(i))
        except Exception as error:  # told by the caller's comparison
            answers[i] = error

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    return answers, threads


def eventually(holds, what, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def wait_for_peer(prefill):
    def handed_over():
        before = prefill.metric("skein_handed_over_total")
        complete(prefill.url, body(1, 3))
        return prefill.metric("skein_handed_over_total") > before

    eventually(handed_over, "no request was handed over")


COUNT = 12


@pytest.fixture(name="wanted", scope="module")
def wanted_answers():
    with SkeinServer(MODEL, *OPTIONS) as server:
        return [complete(server.url, body(i)) for i in range(COUNT)]


def test_same_answers_and_killed_decode_instances(wanted):
    """With a peer, while it is killed, without it, and with the next one."""
    port = free_port()
    with prefill_instance(port) as prefill:
        assert [complete(prefill.url, body(i)) for i in range(3)] == wanted[:3]  # there is no peer yet
        with urllib.request.urlopen(prefill.url + "/scheduler", timeout=30) as view:
            assert json.load(view)["num_running"] == 0
        for _ in range(2):
            with decode_instance(port) as decode:
                wait_for_peer(prefill)
                answers, threads = together(prefill.url, COUNT)
                for thread in threads:
                    thread.join(120)
                assert answers == wanted
                assert decode.metric("vllm:prefix_cache_hits_total") > 0
                before = prefill.metric("skein_taken_back_total")
                answers, threads = together(prefill.url, COUNT)
                eventually(lambda: decode.metric("vllm:num_requests_running") > 2, "nothing decodes at the peer")
                decode.stop(by=signal.SIGKILL)
                for thread in threads:
                    thread.join(120)
                assert answers == wanted
                assert prefill.metric("skein_taken_back_total") > before
        eventually(lambda: prefill.metric("vllm:num_requests_running") == 0, "requests are still counted")


def test_decode_instance_that_hangs(wanted):
    """A stopped process keeps its connection; its silence ends it."""
    port = free_port()
    with prefill_instance(port) as prefill, decode_instance(port) as decode:
        wait_for_peer(prefill)
        decode.process.send_signal(signal.SIGSTOP)
        try:
            answers, threads = together(prefill.url, COUNT)
            for thread in threads:
                thread.join(120)
            assert answers == wanted
        finally:
            decode.process.send_signal(signal.SIGCONT)


def test_decode_instance_that_drains(wanted):
    port = free_port()
    with prefill_instance(port) as prefill, decode_instance(port) as decode:
        wait_for_peer(prefill)
        answers, threads = together(prefill.url, COUNT)
        eventually(lambda: decode.metric("vllm:num_requests_running") > 0, "nothing decodes at the peer")
        assert decode.stop() == 0
        for thread in threads:
            thread.join(120)
        assert answers == wanted


def test_killed_prefill_instance(wanted):
    """Its clients see their connections end; the decode instance ends their requests and serves on."""
    port = free_port()
    with decode_instance(port) as decode:
        with prefill_instance(port) as prefill:
            wait_for_peer(prefill)
            answers, threads = together(prefill.url, COUNT)
            eventually(lambda: decode.metric("vllm:num_requests_running") > 0, "nothing decodes at the peer")
            prefill.stop(by=signal.SIGKILL)
            for thread in threads:
                thread.join(120)
            assert all(answer == want or isinstance(answer, (OSError, urllib.error.URLError)) for answer, want in zip(answers, wanted))
            assert any(isinstance(answer, Exception) for answer in answers)
        eventually(lambda: decode.metric("vllm:num_requests_running") == 0, "requests of the killed instance go on")
        assert complete(decode.url, body(5)) == wanted[5]
        with prefill_instance(port) as prefill:
            wait_for_peer(prefill)
            assert complete(prefill.url, body(5)) == wanted[5]


@pytest.mark.parametrize("options, message", [
    (["--role", "prefill"], "--role prefill needs --decode-peer HOST:PORT"),
    (["--role", "decode"], "--role decode needs --handover-listen HOST:PORT"),
    (["--decode-peer", "localhost:1"], "--decode-peer needs --role prefill"),
    (["--role", "prefill", "--decode-peer", "localhost"], "--decode-peer is 'localhost', must be HOST:PORT"),
    (["--role", "prefill", "--decode-peer", "localhost:1", "--no-enable-prefix-caching"], "--role is refused: blocks come from the prefix cache"),
    (["--role", "decode", "--handover-listen", "127.0.0.1:0", "--scheduling", "prefill-only"], "--role is refused: it needs --retention all"),
])
def test_wrong_usage(options, message):
    done = subprocess.run([SKEIN_BIN, "serve", str(MODEL), "--port", "0", *options], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and message in done.stderr, done.stderr
