"""A request that would wait too long is refused before its text is encoded; nothing else changes for it or for others."""
import concurrent.futures
import json
import time
import urllib.error
import urllib.request

import pytest
from skein_server import ROOT, SkeinServer

MODEL = ROOT / "models/default"
TOO_LONG = "word " * 60_000  # does not fit the context: once it is encoded, the answer is 400
QUESTION = {"type": "predicate", "instructions": "Is it kind?"}


def post(server, path, body):
    """(status, body, headers)"""
    request = urllib.request.Request(server.url + path, json.dumps({"model": "default", **body}).encode())
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers


def refused(server):
    """Calls refused so far: with their prompts made, and without."""
    metrics = server.metrics()
    return [metrics[f'skein_calls_refused_total{{model_name="default",prompts="{prompts}"}}'] for prompts in ("made", "none")]


@pytest.fixture(scope="module")
def busy():
    """A server whose only slot is taken, with more requests in its queue, and the answers to those."""
    with SkeinServer(MODEL, "--max-num-seqs", "1") as server, concurrent.futures.ThreadPoolExecutor() as threads:
        def complete(num_tokens):
            return post(server, "/v1/completions", {"prompt": [100] * 20, "max_tokens": num_tokens, "ignore_eos": True})[0]

        assert post(server, "/v1/completions", {"prompt": TOO_LONG})[0] == 400
        assert post(server, "/v1/decisions", {"input": TOO_LONG, "questions": [QUESTION]})[0] == 400
        assert complete(8) == 200  # the server knows now how long a run takes
        stop = []

        def keep_busy():
            statuses = []
            while not stop:
                statuses.append(complete(200))
            return statuses

        clients = [threads.submit(keep_busy) for _ in range(6)]
        while server.metric("vllm:num_requests_waiting") < 3:
            time.sleep(0.005)
        yield server
        stop.append(True)
        assert {status for client in clients for status in client.result()} == {200}


@pytest.mark.parametrize("path, body", [
    ("/v1/completions", {"prompt": TOO_LONG, "max_tokens": 50}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": TOO_LONG}], "max_tokens": 50}),
])
def test_a_text_is_not_encoded_for_a_refusal(busy, path, body):
    made, none = refused(busy)
    status, answer, headers = post(busy, path, {**body, "timeout_ms": 1})
    assert status == 429, answer
    assert answer["error"]["type"] == "rate_limit_error" and answer["error"]["code"] == "queue_full"
    assert "would wait" in answer["error"]["message"]
    assert int(headers["Retry-After"]) >= 1
    assert refused(busy) == [made, none + 1]


def test_ids_are_refused_by_the_engine(busy):
    made, none = refused(busy)
    assert post(busy, "/v1/completions", {"prompt": [100] * 20, "max_tokens": 50, "timeout_ms": 1})[0] == 429
    assert refused(busy) == [made + 1, none]


def test_a_patient_client_is_served(busy):
    before = refused(busy)
    status, answer, _ = post(busy, "/v1/completions", {"prompt": "hello", "max_tokens": 4, "ignore_eos": True, "timeout_ms": 600_000})
    assert status == 200 and answer["usage"]["completion_tokens"] == 4
    assert refused(busy) == before


@pytest.mark.parametrize("fields", [{"prompt": 5}, {"temperature": -1}, {"timeout_ms": 0}, {"max_tokens": "many"}], ids=str)
def test_a_wrong_field_is_still_named(busy, fields):
    before = refused(busy)
    status, answer, _ = post(busy, "/v1/completions", {"prompt": "hello", "max_tokens": 50, "timeout_ms": 1, **fields})
    assert status == 400 and answer["error"]["param"] == next(iter(fields))
    assert refused(busy) == before
