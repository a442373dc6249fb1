"""LoRA adapters: `skein serve --lora NAME=DIR` with a model of ../shared and adapters made here."""
import concurrent.futures
import json
import re
import subprocess

import httpx
import pytest

from peft_adapter import write_adapter
from skein_server import SKEIN_BIN, SkeinServer

@pytest.fixture(scope="module")
def adapters(stories, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    config = json.loads((stories / "config.json").read_text())
    return {"one": write_adapter(folder / "one", config, 1, ["self_attn.q_proj", "self_attn.v_proj",
                                                             "self_attn.o_proj", "mlp.up_proj"]),
            "two": write_adapter(folder / "two", config, 2, ["mlp.up_proj", "mlp.down_proj"])}


def answer(url, model, start):
    body = {"prompt": start, "max_tokens": 12, "temperature": 0, "logprobs": 1}
    if model:
        body["model"] = model
    got = httpx.post(f"{url}/v1/completions", json=body, timeout=60)
    assert got.status_code == 200, got.text
    choice = got.json()["choices"][0]
    return choice["text"], choice["logprobs"]["token_logprobs"]


@pytest.mark.parametrize("quantization", ["none", "int8", "int4"])
def test_adapters_in_one_batch_have_the_bits_of_each_alone(stories, adapters, quantization):
    options = [o for name, folder in adapters.items() for o in ("--lora", f"{name}={folder}")]
    with SkeinServer(stories, *options, "--quantization", quantization) as server:
        models = ["", "one", "two"]
        starts = ["Once upon a time", "The dog ran to", "Lily and Tom"]
        alone = {(m, s): answer(server.url, m, s) for m in models for s in starts}
        for start in starts:
            assert len({str(alone[m, start]) for m in models}) == 3
        jobs = list(alone) * 4
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for job, got in zip(jobs, pool.map(lambda job: answer(server.url, *job), jobs)):
                assert got == alone[job], job


def test_adapters_are_listed_and_others_are_refused(stories, adapters):
    with SkeinServer(stories, "--lora", f"one={adapters['one']}") as server:
        cards = httpx.get(f"{server.url}/v1/models").json()["data"]
        assert [(c["id"], c["parent"]) for c in cards] == [(stories.name, None), ("one", stories.name)]
        got = httpx.post(f"{server.url}/v1/completions", json={"model": "two", "prompt": "a"})
        assert got.status_code == 404 and "two" in got.json()["error"]["message"]


@pytest.mark.parametrize("lora, message", [
    ("one", "must be NAME=DIR"), ("one=/nowhere", "/nowhere"), ("stories260K=/nowhere", "is taken already")])
def test_an_adapter_that_cannot_be_served_is_named(stories, lora, message):
    run = subprocess.run([SKEIN_BIN, "serve", str(stories), "--port", "0", "--lora", lora],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and message in run.stderr, run.stderr


def test_adapters_with_requests_are_told(stories, adapters):
    options = [o for name, folder in adapters.items() for o in ("--lora", f"{name}={folder}")]
    with SkeinServer(stories, *options) as server:
        def told():
            (name,) = [name for name in server.metrics() if name.startswith("vllm:lora_requests_info{")]
            return dict(re.findall(r'(\w+)="([^"]*)"', name))

        assert told() == {"max_lora": "2", "model_name": stories.name, "running_lora_adapters": "",
                          "waiting_lora_adapters": ""}
        # Work for longer than the metrics take.
        body = {"model": "two", "prompt": ["Once"] * 300, "max_tokens": 400, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=60) as stream:
            lines = stream.iter_lines()  # kept: without it httpx ends the stream
            next(lines)
            assert told()["running_lora_adapters"] == "two"
    with SkeinServer(stories) as server:
        assert not [name for name in server.metrics() if name.startswith("vllm:lora_requests_info")]


CHAT = [{"role": "user", "content": "Tell me about the dog."}]
TWO_DOCUMENTS = ["The dog ran to the park.", "It is raining."]
BRIEF = {"stream": False, "options": {"num_predict": 8, "temperature": 0}}
LABELLED = {"questions": {"late": {"type": "noul", "instructions": "Is it late?"}}}
TEXT_ROUTES = {
    "/v1/completions": {"prompt": "The dog", "max_tokens": 8, "temperature": 0},
    "/v1/chat/completions": {"messages": CHAT, "max_tokens": 8, "temperature": 0},
    "/v1/responses": {"input": "The dog", "max_output_tokens": 16, "temperature": 0},
    "/v1/messages": {"messages": CHAT, "max_tokens": 8, "temperature": 0},
    "/api/chat": {"messages": CHAT, **BRIEF},
    "/api/generate": {"prompt": "The dog", **BRIEF},
    "/v1/decisions": {"input": "The dog ran.", "questions": [{"type": "predicate", "instructions": "Did it run?"}]},
    "/v1/systemone": {"state": "The parcel is late.", **LABELLED},
    "/rerank": {"query": "Where is the dog?", "documents": TWO_DOCUMENTS},
    "/v1/score": {"queries": "Where is the dog?", "documents": TWO_DOCUMENTS},
    "/generative_scoring": {"query": "The dog", "items": TWO_DOCUMENTS, "label_token_ids": [10, 20]},
}
VECTOR_ROUTES = {
    "/v1/embeddings": {"input": "The dog"},
    "/pooling": {"input": "The dog"},
    "/embed": {"inputs": "The dog"},
    "/similarity": {"inputs": {"source_sentence": "The dog", "sentences": TWO_DOCUMENTS}},
    "/api/embed": {"input": "The dog"},
    "/api/embeddings": {"prompt": "The dog"},
    "/v1/score": {"queries": "Where is the dog?", "documents": TWO_DOCUMENTS},
}
VOLATILE = {"id", "created", "created_at", "model", "usage", "completed_at", "total_duration", "load_duration",
            "prompt_eval_duration", "eval_duration"}


def lasting(value):
    """What an answer says, without names and times."""
    if isinstance(value, dict):
        return {key: lasting(member) for key, member in value.items() if key not in VOLATILE}
    return [lasting(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("routes, options", [(TEXT_ROUTES, []), (VECTOR_ROUTES, ["--pooling", "mean"])],
                         ids=["text", "vectors"])
def test_every_route_asks_the_adapter_of_the_model_field(tiny_qwen3, tmp_path, routes, options):
    config = json.loads((tiny_qwen3 / "config.json").read_text())
    adapter = write_adapter(tmp_path / "one", config, 3, ["self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj"])
    with SkeinServer(tiny_qwen3, "--lora", f"one={adapter}", *options) as server:
        def told(route, **model):
            got = httpx.post(server.url + route, json=routes[route] | model, timeout=60)
            assert got.status_code == 200, (route, got.text)
            return lasting(got.json())

        for route in routes:
            base = told(route)
            adapted = told(route, model="one")
            assert adapted != base, route
            assert told(route) == base and told(route, model="one") == adapted, route
