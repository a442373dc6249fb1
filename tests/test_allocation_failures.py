"""Allocations that fail at random, on any thread of a running server: no request's failure is another's, none ends the process."""
import collections
import concurrent.futures
import json
import os
import random
import resource
import signal
import socket
import subprocess
import urllib.parse

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

TOY = ROOT / "models/default"
REQUESTS = 1200
CLIENTS = 8
QUESTIONS = [{"type": "predicate", "instructions": "Is the customer angry?"}, {"type": "choice", "instructions": "About?", "choices": [{"value": "price"}, {"value": "delivery"}]}]
WORK = [
    ("/v1/decisions", {"input": "The lamp came broken.", "questions": QUESTIONS}),
    ("/v1/completions", {"prompt": "a b c d", "max_tokens": 12, "temperature": 0, "ignore_eos": True, "logprobs": 2}),
    ("/v1/completions", {"prompt": ["a b", "c " * 40], "max_tokens": 8, "temperature": 0, "ignore_eos": True, "n": 2, "stream": True}),
    ("/v1/completions", {"prompt": "x y z " * 30, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 6, "temperature": 0}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 9, "temperature": 0, "guided_regex": "[a-z]{3}"}),
    ("/tokenize", {"prompt": "one two three " * 400}),
    ("/rerank", {"query": "price", "documents": ["cheap", "late", "red"]}),
]
VOLATILE = ("id", "created", "system_fingerprint", "cached_tokens", "prompt_tokens_details", "input_tokens_details")


@pytest.fixture(scope="module")
def failing_malloc(tmp_path_factory):
    library = tmp_path_factory.mktemp("malloc") / "failing_malloc.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-std=gnu11", "-o", library, ROOT / "tests/failing_malloc.c"], check=True)
    return library


def exchange(url, path, body, timeout_s=30):
    """(status, body); status 0: the connection ended without a whole answer."""
    parts = urllib.parse.urlsplit(url)
    data = json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {0 if body is None else len(data)}\r\n\r\n"
    got = b""
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout_s) as peer:
            peer.settimeout(timeout_s)
            peer.sendall(head.encode() + (b"" if body is None else data))
            while piece := peer.recv(65536):
                got += piece
    except ConnectionError:
        return 0, ""
    lines, _, answer = got.partition(b"\r\n\r\n")
    if not lines:
        return 0, ""
    chunked = b"Transfer-Encoding: chunked" in lines
    if chunked and not answer.endswith(b"0\r\n\r\n"):
        return 0, ""
    length = [line for line in lines.split(b"\r\n") if line.lower().startswith(b"content-length")]
    if length and len(answer) < int(length[0].split(b":")[1]):
        return 0, ""
    return int(lines.split()[1]), answer.decode()


def plain(value):
    """An answer without what differs from request to request."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items() if key not in VOLATILE}
    return [plain(member) for member in value] if isinstance(value, list) else value


def contents(answer):
    """What an answer says, whatever the pieces of a stream."""
    if not answer.startswith(("data:", "{", "[")) and "data:" not in answer:
        return answer
    if "data:" not in answer:
        return plain(json.loads(answer))
    texts = collections.defaultdict(str)
    for line in answer.split("\n"):
        if "data: {" in line:
            event = json.loads(line[line.index("data: ") + 6:])
            if "error" in event:
                return "error"
            for choice in event["choices"]:
                texts[choice["index"]] += choice["text"]
    return dict(texts)


def gauges(url):
    status, text = exchange(url, "/metrics", None)
    assert status == 200
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    return {name: float(line.split()[-1]) for line in text.split("\n") for name in names if line.startswith(name + "{")}


@pytest.mark.parametrize("one_in", [50000, 8000])
def test_allocations_fail_at_random(failing_malloc, one_in, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(failing_malloc))
    monkeypatch.setenv("FAILING_MALLOC_ONE_IN", str(one_in))
    with SkeinServer(TOY, "--max-wait", 0) as server:
        expected = [contents(exchange(server.url, *work)[1]) for work in WORK]
        server.process.send_signal(signal.SIGUSR2)
        numbers = random.Random(one_in)
        chosen = [numbers.randrange(len(WORK)) for _ in range(REQUESTS)]
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(lambda which: exchange(server.url, *WORK[which]), chosen))
        server.process.send_signal(signal.SIGUSR2)
        assert server.process.poll() is None, "".join(server.log[-20:])
        for which, (status, answer) in zip(chosen, answers):
            assert status in (0, 200, 413, 429, 503), (WORK[which], status, answer[:300])
            if status == 200:
                assert contents(answer) in (expected[which], "error"), WORK[which]
        counts = collections.Counter(status for status, _ in answers)
        assert counts[200] > 0
        assert counts[200] < REQUESTS, "nothing failed"
        # Afterwards all is as before, and nothing is left.
        for work, want in zip(WORK, expected):
            status, answer = exchange(server.url, *work)
            assert (status, contents(answer)) == (200, want)
        assert set(gauges(server.url).values()) == {0.0}
    assert server.exit_status == 0, "".join(server.log[-20:])


def limited(mib):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))


def test_no_start_under_a_limit_ends_with_a_signal():
    """Little address space: the server starts, or says that there is not enough memory."""
    started = 0
    for mib in (20, 40, 60, 80, 100, 120, 150, 180, 220, 260, 300, 400):
        run = subprocess.Popen([SKEIN_BIN, "serve", TOY, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited(mib),
                               env={**os.environ, "LC_ALL": "C"})
        listening = any(line.startswith("listening") for line in run.stdout)
        if listening:
            run.terminate()
        _, said = run.communicate(timeout=60)
        assert run.returncode >= 0, (mib, said)
        started += listening
        if not listening:
            assert run.returncode != 0 and said.strip(), mib
    assert started > 0
