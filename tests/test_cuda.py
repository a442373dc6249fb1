"""The kernels for GPUs behind the whole server, on the emulated device: the bits of the processor's FMA class."""
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

import pytest
from decision_bodies import answer_of, as_decisions
from peft_adapter import write_adapter
from skein_server import ROOT, SKEIN_BIN, STORIES, SkeinServer, needed
from test_modernbert import make_model
from test_rotating_encoders import served

# Few tokens in a step, and no policy that times steps at the start: the emulator is slow.
ARGS = ["--dtype", "bf16", "--max-num-seqs", 4, "--max-model-len", 128, "--kv-cache-memory", "4MiB",
        "--max-num-batched-tokens"]
CHOICES = [[48, "--scheduling", "prelude"], [48, "--scheduling", "prelude", "--no-enable-prefix-caching"],
           [48, "--scheduling", "prelude", "--tp", 2], [16, "--scheduling", "nano-vllm"],
           [48, "--scheduling", "prelude", "--force-decode-path"],
           [48, "--scheduling", "prelude", "--execution", "hybrid", "--retention", "prefix"]]
PROMPTS = ["Once upon a time, there was a", "Tom and Lily went to the park. They saw a big dog and", "The sun"]


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps({"model": "stories260K", **body}).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def answers(batched_tokens, *args, model=STORIES):
    """Texts with log-probabilities, greedy and drawn, and scores."""
    with SkeinServer(needed(model), *ARGS, batched_tokens, *args, "--served-model-name", "stories260K",
                     start_timeout_s=120) as server:
        texts = [post(server, "/v1/completions", {"prompt": prompt, "max_tokens": 10, "logprobs": 3, "seed": 5,
                                                  "temperature": temperature})["choices"]
                 for prompt in PROMPTS for temperature in (0, 1.2)]
        scores = post(server, "/v1/score", {"query": "", "items": PROMPTS, "apply_softmax": True,
                                            "label_token_ids": [300, 310, 320]})["scores"]
    return texts, scores


@pytest.fixture(scope="module")
def fma_class():
    """The processor's answers in the class whose order of sums the emulated products have."""
    os.environ["SKEIN_FORCE_ISA"] = "avx2"
    yield answers(48, "--scheduling", "prelude")
    del os.environ["SKEIN_FORCE_ISA"]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: " ".join(map(str, choice)))
def test_the_emulated_device_has_the_processors_bits(fma_class, choice):
    batched_tokens, *args = choice
    assert answers(batched_tokens, "--device", "cuda-emulated", *args) == fma_class


@pytest.mark.parametrize("shape, ranks, quantization", [("tiny-mistral", 3, "auto"), ("tiny-moe", 2, "auto"),
                                                         ("tiny-moe", 2, "int4")])
def test_several_devices_have_the_processors_bits(shape, ranks, quantization, tmp_path, monkeypatch):
    """Three ranks with shares of different widths, and a mixture of experts, plain and packed."""
    monkeypatch.setenv("SKEIN_FORCE_ISA", "avx2")
    model = tmp_path / shape
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", shape, "--tokenizer", needed(STORIES), model], check=True, capture_output=True)
    args = [48, "--scheduling", "prelude", "--quantization", quantization]
    expected = answers(*args, model=model)
    assert answers(*args, "--device", "cuda-emulated", "--tp", ranks, model=model) == expected


def test_a_number_of_devices_is_refused_by_name():
    stories = needed(STORIES)
    assert "--tp is for --device cuda" in refusal(stories, "--tp", "2")
    assert "tp is 3; devices share the 4 heads of keys and values evenly, and all products by 16 columns, so it can be 1, 2" in refusal(stories, "--device", "cuda-emulated", "--tp", "3")
    assert "--tp" in refusal(stories, "--device", "cuda-emulated", "--tp", "9")


def test_adapters_have_the_processors_bits(tmp_path, monkeypatch):
    monkeypatch.setenv("SKEIN_FORCE_ISA", "avx2")
    stories = needed(STORIES)
    adapter = write_adapter(tmp_path / "one", json.loads((stories / "config.json").read_text()), 1, ["self_attn.q_proj", "mlp.up_proj", "mlp.down_proj"])

    def on(*device):
        with SkeinServer(stories, *ARGS, 48, "--lora", f"one={adapter}", *device, start_timeout_s=120) as server:
            return [post(server, "/v1/completions", {"model": model, "prompt": PROMPTS[1], "max_tokens": 5, "logprobs": 3, "temperature": 0})["choices"]
                    for model in ("one", "stories260K", "one")]

    found = on("--device", "cuda-emulated")
    assert found == on() and found[0] == found[2] != found[1]


DATA = ROOT / "tests/data"
TEXTS = ["the cat sat", "a dog ran home", "rain", "nothing of the kind is here " * 4]
QUERY = {"query": "where is the cat", "documents": TEXTS}


def decisions(model):
    """Requests with the shorter golden questions of a decision model."""
    rows = json.loads((DATA / model / "golden.json").read_text())["rows"]
    bodies = [as_decisions(row["body"]) for row in rows if len(json.dumps(row["body"])) < 1200]
    return [("/v1/decisions", body) for body in bodies if body is not None]


# Models, with requests to them: windows on both sides, LayerNorms that begin the residual stream anew, layers behind
# the pooling, scores that depend on distances, and options that are read one after the other, and side by side. The emulator is slow in f32.
ONE_SHOT = {
    "modernbert/embedding": [("/v1/embeddings", {"input": TEXTS}), ("/v1/embeddings", {"input": TEXTS[1]})],
    "encoders/bert": [("/v1/embeddings", {"input": TEXTS})],
    "sentence/bert-two-dense": [("/v1/embeddings", {"input": TEXTS})],
    "modernbert/reranker": [("/v1/rerank", QUERY)],
    "encoders/xlm-roberta-reranker": [("/v1/rerank", QUERY)],
    "encoders/deberta-v3-classifier": [("/classify", {"input": TEXTS})],
    **{model: decisions(model) for model in ("laya", "laya-parallel", "sysone/modernbert-parallel")},
}


def one_shot_answers(model, requests, *args):
    with SkeinServer(model, "--served-model-name", "m", "--max-num-batched-tokens", 600, *args) as server:
        answers = [answer_of(server, path, {"model": "m", **body}) for path, body in requests]
    return [answer.get("data") or answer.get("results") or answer["answers"] for answer in answers]


@pytest.mark.parametrize("name, dtype", [*((name, "bf16") for name in ONE_SHOT), ("modernbert/embedding", "f32")])
def test_encoders_and_decision_models_have_the_processors_bits(name, dtype, tmp_path, monkeypatch):
    monkeypatch.setenv("SKEIN_FORCE_ISA", "avx2")
    model = DATA / name
    if name.startswith("modernbert/"):
        model, _ = make_model(model.name, tmp_path)
    elif not name.startswith(("laya", "sysone")):
        model = served(model.name, tmp_path, model.parent)
    expected = one_shot_answers(model, ONE_SHOT[name], "--dtype", dtype)
    assert len(expected) == len({json.dumps(answer) for answer in expected}) > 0
    assert one_shot_answers(model, ONE_SHOT[name], "--dtype", dtype, "--device", "cuda-emulated") == expected


def refusal(model, *args):
    run = subprocess.run([SKEIN_BIN, "serve", str(model), "--port", "0", *args], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode != 0
    return run.stderr


def test_what_the_device_lacks_is_refused_by_name():
    stories = needed(STORIES)
    assert "--kv-storage contiguous is for --device cpu" in refusal(
        stories, "--device", "cuda-emulated", "--kv-storage", "contiguous")
    assert "--kv-cache-dtype int8 is for --device cpu" in refusal(
        stories, "--device", "cuda-emulated", "--kv-cache-dtype", "int8")
    assert "bytes are free beside the weights" in refusal(stories, "--device", "cuda-emulated", "--memory", "1GiB")
    assert "which hold no prompt" in refusal(stories, "--device", "cuda-emulated", "--memory", "64KiB")
    assert "must be one of: cpu, cuda, cuda-emulated" in refusal(stories, "--device", "gpu")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_the_server_says_so():
    said = refusal(needed(STORIES), "--device", "cuda")
    assert "without CUDA" in said or "there is no NVIDIA GPU here, or no driver for it" in said


def gpu_check(*args, **environment):
    return subprocess.run([ROOT / "scripts/gpu_check", *map(str, args)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SKEIN_BIN": str(SKEIN_BIN), **environment})


def test_the_script_for_a_gpu_runs_on_the_emulated_device(tmp_path):
    out = tmp_path / "gpu.json"
    run = gpu_check("--emulated", "--json", out, "--models", tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(out.read_text())
    assert result["emulated"] and result["device"] == "emulated"
    parts = result["parts"]
    assert list(parts) == ["kernels", "identity", "schedules", "decisions", "products", "passes", "profile", "ready", "latency", "scoring", "throughput", "offload",
                           "preemption"]
    assert not any("error" in part for part in parts.values()), run.stdout
    assert len(parts["kernels"]["kernels"]) >= 45 and all(kernel["right"] for kernel in parts["kernels"]["kernels"])
    for cases in parts["identity"]["models"].values():
        assert len(cases) >= 16 and all(case["different"] == 0 for case in cases)
    assert all(case["compared"] > 0 for case in parts["identity"]["models"]["tiny"])
    assert parts["identity"]["models"]["qwen3-bf16, f32"][-1]["case"] == "alone, beside the emulator"
    assert parts["identity"]["models"]["tiny, two devices"][-1]["case"] == "alone, beside one device"
    assert [(one["answers"], one["alone_and_together"], one["equal_to_first"]) for one in parts["schedules"]["schedules"]] == [(8, True, True)] * 2
    assert [(one["answers"], one["different"]) for one in parts["decisions"]["models"]] == [(1, 0)] * 2
    assert parts["decisions"]["models"][0]["right"] == 2
    passes = parts["passes"]["models"]["tiny"]
    assert parts["passes"]["models"]["tiny-modernbert"]["decode"] == [] and len(parts["passes"]["models"]["tiny-qwen3.5"]["decode"]) == 2
    assert [one["prompts"] for one in passes["prefill"]] == [1, 2] and len(passes["decode"]) == 2
    assert all(one["ttft_ms"] > 0 for one in passes["prefill"])
    prompt, decode = parts["profile"]["models"]["tiny"]
    assert prompt["pass"] == "prompt of 20 tokens" and decode["pass"] == "decode of 1"
    for one in (prompt, decode):
        assert {"embed", "norm", "heads", "attention"} < {kernel["kernel"] for kernel in one["kernels"]}
        assert all(kernel["us"] > 0 for kernel in one["kernels"])
    one, four = parts["latency"]["loads"]
    assert one["completed"] == 3 and four["completed"] == 4 and four["median_tpot_ms"] > 0
    assert [level["clients"] for level in parts["throughput"]["levels"]] == [1, 2]
    assert {level["queries"] for level in parts["scoring"]["levels"]} == {"own", "common"}
    without, offloaded = parts["offload"]["servers"]
    assert (without["cached_tokens"], offloaded["cached_tokens"]) == (0, 6 * 64) and offloaded["equal_to_first"]  # full blocks
    assert parts["ready"]["starts"][0]["first_answer_s"] > parts["ready"]["starts"][0]["ready_s"] > 0
    assert {one["granularity"]: one["count"] for one in parts["preemption"]["granularities"]} == {"op-tile": 5, "op": 5, "layer": 5, "chunk": 5}
    assert run.stdout.count("trial") == 6  # every target has a figure, and none a verdict


def test_tiles_of_products_are_timed(tmp_path):
    out = tmp_path / "tiles.json"
    run = subprocess.run([SKEIN_BIN, "bench", "gpu", "--emulated", "--parts", "tiles", "--repetitions", "1", "--json", out], capture_output=True, text=True,
                         timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    tiles = json.loads(out.read_text())["tiles"]
    for gated in (False, True):
        for m in (16, 70):
            of_shape = [tile for tile in tiles if (tile["m"], tile["gated"]) == (m, gated)]
            assert len(of_shape) > 1 and sum(tile["chosen"] for tile in of_shape) == 1


# A part that fails or has no time is recorded, and the others run.
def test_no_part_of_the_script_stops_another(tmp_path):
    out = tmp_path / "gpu.json"
    models = tmp_path / "models"
    models.write_text("no folder")
    run = gpu_check("--emulated", "--only", "identity,products", "--json", out, "--models", models)
    assert run.returncode == 1, run.stdout + run.stderr  # identity is not known
    parts = json.loads(out.read_text())["parts"]
    assert "models" in parts["identity"]["error"] and "error" not in parts["products"] and parts["products"]["products"]
    run = gpu_check("--emulated", "--only", "kernels", "--json", out, "--seconds", 0)
    assert run.returncode == 1 and "no time was left" in json.loads(out.read_text())["parts"]["kernels"]["error"]


@pytest.fixture
def gpu_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("gpu_page")


def test_the_page_is_made_of_its_data(gpu_page):
    data = json.loads(gpu_page.DATA.read_text())
    assert gpu_page.pages.wrap(gpu_page.page(data)) == gpu_page.PAGE.read_text(), "run tools/gpu_page.py"


def test_a_verdict_compares_with_the_target(gpu_page):
    def verdicts(**parts):
        return [verdict for _, _, _, verdict in gpu_page.verdicts({"emulated": False, "quick": False, "parts": parts})]

    def load(ttft, tpot):
        return {"loads": [{"clients": 1, "median_ttft_ms": ttft}, {"clients": 4, "median_ttft_ms": 4.0, "median_tpot_ms": tpot}]}

    def levels(first, last):
        return {"levels": [{"clients": 1, "request_throughput": first}, {"clients": 128, "request_throughput": last}]}

    def blocking(layer, op):
        return {"granularities": [{"granularity": "layer", "mean_ms": layer}, {"granularity": "op", "mean_ms": op, "p99_ms": 4.0}]}

    assert verdicts() == ["not measured"] * 6
    assert verdicts(latency=load(1.1, 1.1), throughput=levels(80, 200), scoring={"levels": [1], "own_items_per_s": 2100},
                    ready={"median_ready_s": 1.9}, preemption=blocking(8.0, 2.0)) == ["met"] * 6
    assert verdicts(latency=load(1.3, 1.3), throughput=levels(60, 200), scoring={"levels": [1], "own_items_per_s": 1900},
                    ready={"median_ready_s": 2.1}, preemption=blocking(6.0, 2.0)) == ["missed"] * 6
    assert verdicts(throughput=levels(80, 180))[2] == "missed"


def test_a_limit_of_time_ends_a_part_and_its_server(tmp_path):
    begin = time.monotonic()
    run = gpu_check("--emulated", "--only", "schedules", "--json", tmp_path / "gpu.json", "--models", tmp_path, "--seconds", 0.9, MARK=str(tmp_path))
    assert run.returncode == 1 and time.monotonic() - begin < 30
    part = json.loads((tmp_path / "gpu.json").read_text())["parts"]["schedules"]
    assert "not done within" in part["error"] and part["schedules"] == []
    assert not processes_with(str(tmp_path))


def processes_with(word):
    """Command lines of processes whose environment holds it."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes())
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


def test_the_script_refuses_what_it_does_not_have(tmp_path):
    assert "--only: no part 'speed' here; there are kernels, identity" in gpu_check("--emulated", "--only", "speed").stderr
    assert "is no program" in gpu_check("--emulated", "--program", tmp_path).stderr
