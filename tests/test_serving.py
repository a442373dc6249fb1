"""What a server must hold over its life: no growth, nothing lost at its end."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import signal
import subprocess
import threading
import time

import httpx
import pytest

from skein_server import SKEIN_BIN, SkeinServer

NUM_REQUESTS = 10_000
# The allocator's arenas settle in the first requests; after them, growth would show: a leak of one
# prompt (some hundred bytes) per request would be several MiB over the rest.
WARM_UP_REQUESTS = 4_000
GROWTH_KIB_MAX = 2_048


def send(url, first, last, clients=16):
    """By http.client: a request through httpx costs more than the server's work for it."""
    numbers = iter(range(first, last))

    def work():
        with contextlib.closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)) as connection:
            for i in numbers:
                body = {"model": "stories260K", "prompt": f"Story number {i % 5000}", "temperature": 0,
                        "max_tokens": 1 if i % 4 else 5}
                connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 200, text

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for worker in [pool.submit(work) for _ in range(clients)]:
            worker.result()


def test_memory_does_not_grow_and_blocks_are_free(stories):
    with SkeinServer(stories) as server:
        send(server.url, 0, WARM_UP_REQUESTS)
        before_kib = server.resident_kib()
        send(server.url, WARM_UP_REQUESTS, NUM_REQUESTS)
        growth_kib = server.resident_kib() - before_kib
        assert growth_kib < GROWTH_KIB_MAX
        assert server.metric("vllm:num_requests_running") == 0
        assert server.metric("vllm:num_requests_waiting") == 0
        assert server.metric("vllm:kv_cache_usage_perc") == 0
        assert server.metric("vllm:request_success_total") == NUM_REQUESTS


@pytest.mark.parametrize("options", [[], ["--pin-threads"]])
def test_idle_server_uses_no_processor(stories, options):
    """For two seconds in a row, soon: behind its first requests a server measures its costs, later where others are busy."""
    with SkeinServer(stories, *options) as server:
        send(server.url, 0, 20)

        def ticks():
            fields = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        def used_in(seconds):
            before = ticks()
            time.sleep(seconds)
            return ticks() - before

        assert any(used_in(2) <= 2 for _ in range(5))  # of 200: 1 % of one core


def test_a_language_model_embeds_where_the_pooling_is_given(stories):
    body = {"input": "Once upon a time"}
    with SkeinServer(stories) as server:
        answer = httpx.post(server.url + "/v1/embeddings", json=body)
        assert answer.status_code == 400
        assert "--pooling" in answer.json()["error"]["message"]
    vectors = {}
    for pooling in ("last", "mean"):
        with SkeinServer(stories, "--pooling", pooling) as server:
            answer = httpx.post(server.url + "/v1/embeddings", json=body)
            assert answer.status_code == 200, answer.text
            vectors[pooling] = answer.json()["data"][0]["embedding"]
            story = httpx.post(server.url + "/v1/completions", json={"prompt": "Once", "max_tokens": 4})
            assert story.json()["usage"]["completion_tokens"] == 4
    assert len(vectors["last"]) == len(vectors["mean"]) == 64
    assert vectors["last"] != vectors["mean"]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_drains_running_work(stories, by):
    # One at a time, so that some wait while the first runs.
    with SkeinServer(stories, "--max-num-seqs", 1) as server:
        answers = []

        def ask():
            body = {"model": "stories260K", "prompt": "Once", "max_tokens": 400, "temperature": 0,
                    "ignore_eos": True}
            answers.append(httpx.post(server.url + "/v1/completions", json=body, timeout=60))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 10
        # All four have arrived: answered, waiting or running. Read in the order of a request's life
        # backwards, so that none is counted twice.
        while len(answers) + server.metric("vllm:num_requests_running") + server.metric(
                "vllm:num_requests_waiting") < 4:
            assert time.monotonic() < deadline
        assert server.stop(by=by) == 0
        for thread in threads:
            thread.join()
        assert [a.status_code for a in answers] == [200] * 4
        assert all(a.json()["usage"]["completion_tokens"] == 400 for a in answers)


def test_what_outlasts_the_shutdown_ends_with_an_error(stories):
    with SkeinServer(stories, "--shutdown-timeout", "0.1", "--max-num-seqs", "1", "--max-wait", "0") as server:
        answers = {}

        def ask(stream):
            body = {"prompt": ["Once"] * 500, "max_tokens": 500, "ignore_eos": True, "stream": stream}
            answers[stream] = httpx.post(server.url + "/v1/completions", json=body, timeout=60)

        threads = [threading.Thread(target=ask, args=(stream,)) for stream in (False, True)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 10
        while server.metric("vllm:num_requests_waiting") < 500:
            assert time.monotonic() < deadline
        time.sleep(0.1)  # the stream has begun
        assert server.stop() == 0
        for thread in threads:
            thread.join()
        assert answers[False].status_code == 503
        assert answers[False].json()["error"]["type"] == "unavailable_error"
        if answers[True].status_code == 200:
            *_, error, end, _ = answers[True].text.split("\n\n")
            assert end == "data: [DONE]"
            assert "unavailable_error" in error
        else:
            assert answers[True].status_code == 503


def test_no_file_of_weights_stays_mapped(stories):
    """What is packed at load is held once: the originals are no longer mapped."""
    with SkeinServer(stories) as server:
        mapped = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
        assert str(pathlib.Path(SKEIN_BIN).resolve()) in mapped  # it is the server's
        assert ".safetensors" not in mapped


def test_run_reproduces_the_published_story(stories):
    import json
    golden = json.loads((stories / "golden.json").read_text())
    run = subprocess.run([SKEIN_BIN, "run", str(stories), "--prompt", "", "--max-tokens", "200",
                          "--temperature", "0"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout.rstrip("\n") == golden["published_greedy_text_200"]


def test_config_file_environment_and_command_line(stories, tmp_path, monkeypatch):
    config = tmp_path / "skein.toml"
    config.write_text("""[serve]
served-model-name = ["first", "second"]
allowed-origins = ["http://a", "http://b"]
max-num-seqs = 3
no-enable-prefix-caching = true

[run]
prompt = "Once"
""")
    monkeypatch.setenv("SKEIN_MAX_LOGPROBS", "7")
    with SkeinServer(stories, "--config", config, "--max-num-seqs", "2") as server:
        cards = httpx.get(server.url + "/v1/models", headers={"Origin": "http://b"})
        assert [card["id"] for card in cards.json()["data"]] == ["first", "second"]
        assert cards.headers["access-control-allow-origin"] == "http://b"

        def ask(**fields):
            return httpx.post(server.url + "/v1/completions", json={"prompt": [5] * 70, **fields}).json()

        assert "[1, 2]" in ask(n=3)["error"]["message"]  # the command line wins over the file
        assert "[0, 7]" in ask(logprobs=8)["error"]["message"]
        for _ in range(2):
            assert ask(max_tokens=1)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_sigterm_right_after_the_start(stories):
    for delay_s in (0, 0.001, 0.005, 0.02):
        process = subprocess.Popen([SKEIN_BIN, "serve", str(stories), "--port", "0"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout.readline().startswith(f"loading {stories} on http://")
        time.sleep(delay_s)
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


def test_one_deep_or_wide_body_does_not_stop_the_others(stories, tmp_path):
    template = tmp_path / "chat.jinja"
    template.write_text("{{ messages[0].content }}{{ tools | tojson }}")
    with SkeinServer(stories, "--chat-template", template) as server:
        deep = "[" * 1_000_000 + "]" * 1_000_000
        wide = ",".join(f'"{i}":0' for i in range(200_000))
        for fields in (f'"tools":{deep}', f'"logit_bias":{{{wide}}}'):
            body = '{"messages":[{"role":"user","content":"a"}],' + fields + "}"
            answer = httpx.post(server.url + "/v1/chat/completions", content=body, timeout=20)
            assert answer.status_code == 400
        assert httpx.get(server.url + "/health").status_code == 200


def test_serve_refuses_what_it_cannot_do(stories, tmp_path):
    unknown = tmp_path / "unknown.toml"
    unknown.write_text("[serve]\nbogus = 1\n")
    for args, named in [(["/nonexistent/model"], "/nonexistent/model"),
                        ([str(stories), "--scheduling", "fastest"], "fastest"),
                        ([str(stories), "--dtype", "int3"], "int3"),
                        ([str(stories), "--kv-cache-memory", "12parsecs"], "12parsecs"),
                        ([str(stories), "--max-model-len", "100000"], "100000"),
                        ([str(stories), "--served-model-name", ""], "--served-model-name"),
                        ([str(stories), "--threads", "99999"], "--threads"),
                        ([str(stories), "--shutdown-timeout", "nan"], "nan"),
                        ([str(stories), "--config", str(unknown)], "serve.bogus"),
                        ([str(tmp_path)], "config.json")]:
        run = subprocess.run([SKEIN_BIN, "serve", *args, "--port", "0"], capture_output=True,
                             text=True, timeout=60)
        assert run.returncode != 0
        assert named in run.stdout + run.stderr
