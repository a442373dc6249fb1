"""smg, a router in front of several servers: requests reach both replicas, and the answers are those of one.

Run by `make check-clients`.
"""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from random_models import modernbert  # noqa: E402
from skein_server import SkeinServer, fetched  # noqa: E402


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def replicas():
    model = fetched("smollm2")
    options = ("--served-model-name", "smollm2", "--max-model-len", 2048, "--threads", 1)
    with SkeinServer(model, *options) as first, SkeinServer(model, *options) as second:
        yield first, second


@contextlib.contextmanager
def routed(folder, *servers):
    """The address of a router in front of `servers`."""
    port, metrics = free_port(), free_port()
    log = folder / "smg.log"
    smg = pathlib.Path(sys.executable).parent / "smg"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(smg), "launch", "--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics),
             "--policy", "round_robin", "--worker-urls", *(server.url for server in servers)],
            stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if len(json.loads(urllib.request.urlopen(url + "/v1/models", timeout=5).read())["data"]) > 0:
                    break
            except (OSError, ValueError, KeyError):
                pass
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def router(replicas, tmp_path_factory):
    with routed(tmp_path_factory.mktemp("smg"), *replicas) as url:
        yield url


def test_answers_come_through_the_router(router, replicas):
    chat = {"model": "smollm2", "messages": [{"role": "user", "content": "Name the capital of France."}],
            "max_tokens": 12, "temperature": 0}
    expected = ask(replicas[0].url, "/v1/chat/completions", chat)["choices"][0]["message"]["content"]
    before = [server.metric("skein_requests_total") for server in replicas]
    for _ in range(6):
        answer = ask(router, "/v1/chat/completions", chat)
        assert answer["choices"][0]["message"]["content"] == expected
    counts = [server.metric("skein_requests_total") - count for server, count in zip(replicas, before)]
    # Its own probes of the replicas count, too.
    assert min(counts) >= 3
    text = ask(router, "/v1/completions", {"model": "smollm2", "prompt": "Once", "max_tokens": 4, "temperature": 0})
    assert text["choices"][0]["text"] == ask(
        replicas[1].url, "/v1/completions",
        {"model": "smollm2", "prompt": "Once", "max_tokens": 4, "temperature": 0})["choices"][0]["text"]


def test_streams_come_through_the_router(router):
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Count to three."}], "max_tokens": 8,
            "stream": True}
    request = urllib.request.Request(router + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        events = [line for line in answer.read().decode().split("\n\n") if line]
    assert events[-1] == "data: [DONE]" and len(events) >= 8


def test_ranks_come_through_the_router(router, replicas):
    """smg's own two forms; it asks the replicas in SGLang's, for the model "unknown" where it is told none."""
    body = {"query": "What is the capital of France?",
            "documents": ["Cats sleep a lot.", "Paris is the capital of France."], "model": "smollm2"}
    expected = ask(replicas[0].url, "/v1/rerank", body)["results"]
    for path in ("/v1/rerank", "/rerank"):
        scores = {entry["index"]: entry["score"] for entry in ask(router, path, body)["results"]}
        assert scores == pytest.approx({entry["index"]: entry["relevance_score"] for entry in expected}, rel=1e-6)


def test_classes_and_embeddings_come_through_the_router(tmp_path):
    for kind, path in (("classifier", "/v1/classify"), ("embedding", "/v1/embeddings")):
        (tmp_path / f"routed-{kind}").mkdir()
        model = modernbert(kind, tmp_path)
        with SkeinServer(model) as server, routed(tmp_path / f"routed-{kind}", server) as url:
            body = {"model": model.name, "input": ["A text.", "Another one."]}
            assert ask(url, path, body)["data"] == ask(server.url, path, body)["data"]
