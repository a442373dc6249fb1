"""Decisions alone, beside everything else that their server takes, and after restarts: the same bits, for every kind of model.

Sixteen clients send, in an order of their own, decisions in both forms, decisions with deadlines and without sharing, requests
that are refused, requests whose clients leave, tokens, lists of models, metrics and a batch of a file. A language model, whose
decisions are read at labels, writes chats meanwhile. No answer may differ from that of the idle server, and no other request
may fail. The seed fixes what a client sends, not how clients interleave.
"""
import concurrent.futures
import contextlib
import json
import random
import socket
import time

import httpx
import pytest

from decision_bodies import as_decisions
from skein_server import ROOT, SkeinServer

DATA = ROOT / "tests/data"
DECISION_MODELS = {"laya": DATA / "laya", "sysone-encoder": DATA / "sysone/modernbert-parallel",
                   "sysone-decoder": DATA / "sysone/qwen3-parallel", "kev": DATA / "kev/qwen3.5-adapter",
                   "kev-attention": DATA / "kev/qwen3-adapter", "clef": DATA / "clef/tied"}
LANGUAGE_MODEL = ROOT / "models/default"
CLIENTS = 16
ROUNDS = 12  # of each client
RESTARTS = {"laya": ["--threads", "1"], "sysone-encoder": ["--scheduling", "prefill-only"],
            "sysone-decoder": ["--scheduling", "chunked-fcfs"], "kev": ["--scheduling", "prefill-only", "--threads", "1"],
            "kev-attention": ["--scheduling", "chunked-fcfs", "--max-num-batched-tokens", "1024"],
            "clef": ["--scheduling", "chunked-fcfs", "--threads", "1"],
            "language-model": ["--scheduling", "flow-prefill"]}


def bodies_of(name):
    """Requests to /v1/systemone: the golden ones of a decision model."""
    if name == "language-model":
        path = DATA / "laya"
    else:
        path = DECISION_MODELS[name]
    rows = json.loads((path / "golden.json").read_text())["rows"]
    bodies = [{key: value for key, value in row["body"].items() if key in ("state", "questions")} for row in rows]
    small = [body for body in bodies if len(json.dumps(body)) < 4000 and len(body["questions"]) < 20]
    assert len(small) >= 3
    return small[:6]


def exact(body, path):
    """What must not change of an answer."""
    if path == "/v1/decisions":
        return body["answers"]
    return {"answers": body["answers"], "input_tokens": body["usage"]["input_tokens"]}


class Load:
    """`expected`: (path, body as text) -> the idle server's answer."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.generates = name == "language-model"
        self.asked = [("/v1/systemone", body) for body in bodies_of(name)]
        self.asked += [("/v1/decisions", decisions) for body in bodies_of(name) if (decisions := as_decisions(body))]
        with httpx.Client(base_url=server.url, timeout=120) as client:
            self.expected = {self.key(*asked): self.answer(client, *asked) for asked in self.asked}
            self.name_served = client.get("/v1/models").json()["data"][0]["id"]

    @staticmethod
    def key(path, body):
        return path + json.dumps(body, sort_keys=True)

    @staticmethod
    def answer(client, path, body, more=None):
        answer = client.post(path, json={**body, **(more or {})})
        assert answer.status_code == 200, answer.text
        return exact(answer.json(), path)

    def decide(self, client, rng):
        asked = rng.choice(self.asked)
        more = rng.choice([{}, {}, {"cache_salt": str(rng.random())}, {"slo_ttft_ms": rng.choice([1, 50, 5000])},
                           {"priority": rng.choice([-1, 1])}])
        assert self.answer(client, *asked, more) == self.expected[self.key(*asked)], asked

    def refuse(self, client, rng):
        body = {"state": "x", "questions": {"q": {"type": rng.choice(["box", 7, None]), "instructions": "x"}}}
        assert client.post("/v1/systemone", json=body).status_code == 400
        if not self.generates:
            assert client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hello"}]}).status_code == 400

    def look(self, client, rng):
        assert client.get(rng.choice(["/v1/models", "/metrics", "/health"])).status_code == 200
        answer = client.post("/tokenize", json={"prompt": "It rained all night."})
        assert answer.status_code == 200 and answer.json()["tokens"]

    def leave(self, client, rng):
        """A client that closes its connection before the answer."""
        path, body = rng.choice(self.asked)
        data = json.dumps(body).encode()
        host, port = self.server.url.removeprefix("http://").split(":")
        with contextlib.closing(socket.create_connection((host, int(port)), timeout=30)) as connection:
            connection.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                               % (path.encode(), len(data)) + data)
            time.sleep(rng.random() * 0.01)

    def write(self, client, rng):
        """A chat, of a language model alone."""
        if not self.generates:
            return self.decide(client, rng)
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": rng.choice([1, 30, 80]), "temperature": 0.7,
                "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200
            assert b"[DONE]" in answer.read()

    def run_client(self, number):
        rng = random.Random(number)
        kinds = [self.decide] * 4 + [self.refuse, self.look, self.leave, self.write, self.write]
        with httpx.Client(base_url=self.server.url, timeout=120) as client:
            for _ in range(ROUNDS):
                rng.choice(kinds)(client, rng)
            self.decide(client, rng)

    def begin_batch(self, client, path):
        """The requests of one route as a batch of a file, behind the live traffic."""
        lines = "".join(json.dumps({"custom_id": str(i), "method": "POST", "url": path, "body": {**body, "model": self.name_served}}) + "\n"
                        for i, (route, body) in enumerate(self.asked) if route == path)
        file = client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", lines.encode())})
        assert file.status_code == 200, file.text
        batch = client.post("/v1/batches", json={"input_file_id": file.json()["id"], "endpoint": path, "completion_window": "24h"})
        assert batch.status_code == 200, batch.text
        return batch.json()["id"]

    def check_batch(self, client, batch_id):
        deadline = time.monotonic() + 60
        while (batch := client.get(f"/v1/batches/{batch_id}").json())["status"] != "completed":
            assert time.monotonic() < deadline and batch["status"] in ("validating", "in_progress", "finalizing"), batch
            time.sleep(0.05)
        for line in client.get(f"/v1/files/{batch['output_file_id']}/content").text.splitlines():
            answer = json.loads(line)
            path, body = self.asked[int(answer["custom_id"])]
            assert answer["response"]["status_code"] == 200
            assert exact(answer["response"]["body"], path) == self.expected[self.key(path, body)]

    def run(self):
        with httpx.Client(base_url=self.server.url, timeout=120) as client:
            batches = [self.begin_batch(client, path) for path in ("/v1/systemone", "/v1/decisions")]
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(self.run_client, range(CLIENTS)))
            for batch in batches:
                self.check_batch(client, batch)


@pytest.mark.parametrize("name", [*DECISION_MODELS, "language-model"])
def test_decisions_have_the_same_bits_alone_under_mixed_load_and_after_a_restart(name, tmp_path):
    model = DECISION_MODELS.get(name, LANGUAGE_MODEL)
    options = ["--dtype", "f32", "--batch-dir", tmp_path]
    with SkeinServer(model, *options) as server:
        load = Load(server, name)
        load.run()
        assert server.metric("vllm:num_requests_running") == 0 or _idle(server)
    with SkeinServer(model, *options, *RESTARTS[name]) as other:
        again = Load(other, name)
        assert again.expected == load.expected
        again.run()


def _idle(server):
    """Requests whose clients have left may take a moment to end."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if server.metric("vllm:num_requests_running") == 0:
            return True
        time.sleep(0.05)
    return False
