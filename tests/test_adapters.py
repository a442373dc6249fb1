"""LoRA adapters: `skein serve --lora NAME=DIR` with a model of ../shared and adapters made here."""
import concurrent.futures
import json
import re
import subprocess

import httpx
import numpy
import pytest

from safetensors_file import write_safetensors
from skein_server import SKEIN_BIN, SkeinServer

RANK = 4


def write_adapter(folder, config, seed, modules):
    """A random adapter, as PEFT lays it out, for a Llama of that config.json."""
    random = numpy.random.default_rng(seed)
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    shapes = {"self_attn.q_proj": (heads * head_dim, hidden),
              "self_attn.v_proj": (config["num_key_value_heads"] * head_dim, hidden),
              "self_attn.o_proj": (hidden, heads * head_dim),
              "mlp.up_proj": (config["intermediate_size"], hidden),
              "mlp.down_proj": (hidden, config["intermediate_size"])}
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for module in modules:
            rows, columns = shapes[module]
            name = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{name}.lora_A.weight"] = random.normal(0, 0.2, (RANK, columns))
            tensors[f"{name}.lora_B.weight"] = random.normal(0, 0.2, (rows, RANK))
    folder.mkdir()
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "bias": "none",
         "target_modules": [m.split(".")[1] for m in modules]}))
    return folder


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
            next(stream.iter_lines())
            assert told()["running_lora_adapters"] == "two"
    with SkeinServer(stories) as server:
        assert not [name for name in server.metrics() if name.startswith("vllm:lora_requests_info")]
