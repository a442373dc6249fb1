"""The kernels for GPUs behind the whole server, on the emulated device: the bits of the processor's FMA class."""
import json
import os
import shutil
import subprocess
import urllib.request

import pytest
from skein_server import ROOT, SKEIN_BIN, STORIES, SkeinServer, needed

# Few tokens in a step, and no policy that times steps at the start: the emulator is slow.
ARGS = ["--dtype", "bf16", "--max-num-seqs", 4, "--max-model-len", 128, "--kv-cache-memory", "4MiB",
        "--max-num-batched-tokens"]
CHOICES = [[48, "--scheduling", "prelude"], [48, "--scheduling", "prelude", "--no-enable-prefix-caching"],
           [16, "--scheduling", "nano-vllm"], [48, "--scheduling", "prelude", "--force-decode-path"]]
PROMPTS = ["Once upon a time, there was a", "Tom and Lily went to the park. They saw a big dog and", "The sun"]


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps({"model": "stories260K", **body}).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def answers(batched_tokens, *args):
    """Texts with log-probabilities, greedy and drawn, and scores."""
    with SkeinServer(needed(STORIES), *ARGS, batched_tokens, *args, start_timeout_s=120) as server:
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


def refusal(model, *args):
    run = subprocess.run([SKEIN_BIN, "serve", str(model), "--port", "0", *args], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode != 0
    return run.stderr


def test_what_the_device_lacks_is_refused_by_name():
    stories = needed(STORIES)
    assert "--memory is for --device cpu" in refusal(stories, "--device", "cuda-emulated", "--memory", "64MiB")
    assert "must be one of: cpu, cuda, cuda-emulated" in refusal(stories, "--device", "gpu")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_the_server_says_so():
    said = refusal(needed(STORIES), "--device", "cuda")
    assert "without CUDA" in said or "there is no NVIDIA GPU here, or no driver for it" in said


def test_the_script_for_a_gpu_runs_on_the_emulated_device(tmp_path):
    out = tmp_path / "gpu.json"
    run = subprocess.run([ROOT / "scripts/gpu_check", "--emulated", "--json", out], capture_output=True, text=True,
                         timeout=500, env={**os.environ, "SKEIN_BIN": str(SKEIN_BIN)})
    assert run.returncode == 0, run.stdout + run.stderr
    assert "every kernel agrees with the emulator" in run.stdout
    result = json.loads(out.read_text())
    assert result["emulated"] and result["device"] == "emulated"
    assert len(result["kernels"]) >= 18 and all(kernel["right"] for kernel in result["kernels"])
    assert result["passes"]["prefill"] and result["passes"]["decode"]
