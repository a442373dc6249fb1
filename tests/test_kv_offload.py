"""--kv-offload-memory behind the whole server, on the emulated device: evicted blocks come back from the host."""
import json
import re
import subprocess
import urllib.request

import pytest
from skein_server import SKEIN_BIN, STORIES, SkeinServer, needed
from test_modernbert import make_model
from test_sim import DEVICE, MODEL

# Eight blocks of 80 KiB: two prompts of three blocks each, and a block of output.
ARGS = ["--device", "cuda-emulated", "--dtype", "bf16", "--max-num-seqs", 2, "--max-model-len", 128, "--kv-cache-memory", "640KiB",
        "--max-num-batched-tokens", 48, "--scheduling", "prelude", "--served-model-name", "m"]
BYTES_PER_TOKEN = 2 * 2 * 4 * 2 * 32  # keys and values of the model in test_sim, in bf16
PROMPTS = [[1] + [30 + (7 * i + 41 * k) % 400 for i in range(95)] for k in range(4)]


def post(server, body):
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps({"model": "m", **body}).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics", timeout=30) as answer:
        return float(re.search(rf"^{name}{{[^}}]*}} (\S+)$", answer.read().decode(), re.M).group(1))


def ask_all(server, prompts):
    """The answers, with log-probabilities, and the number of cached tokens of each."""
    answers = [post(server, {"prompt": prompt, "max_tokens": 3, "temperature": 0, "logprobs": 3}) for prompt in prompts]
    return ([answer["choices"] for answer in answers],
            [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers])


@pytest.fixture(scope="module")
def without_offloading():
    with SkeinServer(needed(STORIES), *ARGS, start_timeout_s=120) as server:
        answers, cached = ask_all(server, [*PROMPTS, PROMPTS[0]])
        assert metric(server, "skein_host_kv_blocks") == 0
        assert metric(server, "skein_host_kv_saved_total") == 0
    assert answers[4] == answers[0]
    assert cached == [0] * 5  # it is evicted
    return answers


@pytest.mark.parametrize("args", [[], ["--tp", "2"], ["--force-decode-path"]], ids=" ".join)
def test_an_evicted_prompt_comes_back(without_offloading, args):
    with SkeinServer(STORIES, *ARGS, "--kv-offload-memory", "2MiB", *args, start_timeout_s=120) as server:
        answers, cached = ask_all(server, [*PROMPTS, PROMPTS[0]])
        assert answers == without_offloading
        assert cached == [0, 0, 0, 0, 64]  # all full blocks but the one with the last token
        assert metric(server, "skein_host_kv_blocks") == 25
        assert metric(server, "skein_host_kv_loaded_total") == 2
        saved, used = metric(server, "skein_host_kv_saved_total"), metric(server, "skein_host_kv_blocks_used")
        assert saved >= used >= 5
        # The others are on the host, too.
        answers, cached = ask_all(server, PROMPTS[1:])
        assert answers == without_offloading[1:4]
        assert cached == [64, 64, 64]


def refusal(model, *args):
    run = subprocess.run([SKEIN_BIN, "serve", str(model), "--port", "0", *args], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    return run.stderr


def test_where_it_has_no_use_it_is_refused_by_name(tmp_path):
    stories = needed(STORIES)
    device, memory = ["--device", "cuda-emulated"], ["--kv-offload-memory", "2MiB"]
    assert "--kv-offload-memory is for --device cuda" in refusal(stories, *memory)
    assert "--kv-offload-memory needs --enable-prefix-caching" in refusal(stories, *device, *memory, "--no-enable-prefix-caching")
    encoder, _ = make_model("embedding", tmp_path)
    assert "--kv-offload-memory needs a model that caches prefixes" in refusal(encoder, *device, *memory)
    qwen35 = tmp_path / "tiny-qwen3.5"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", qwen35.name, qwen35], check=True, capture_output=True)
    assert "--kv-offload-memory is for models without linear layers" in refusal(qwen35, *device, *memory)
    small = refusal(stories, *device, "--dtype", "bf16", "--kv-offload-memory", "81919")
    assert "--kv-offload-memory is 81919; a block has 81920 bytes" in small
    assert "kv-offload-memory" in refusal(stories, *device, "--kv-offload-memory", "much")
    assert "; the host has " in refusal(stories, *device, "--kv-offload-memory", "1000TiB")


def test_the_simulator_has_the_same_tier(tmp_path):
    """Three documents in turn, one of which fits the device: with the host's memory, each is computed once."""
    device, workload, report = (tmp_path / name for name in ("device.json", "load.jsonl", "sim.json"))
    device.write_text(json.dumps(DEVICE | {"host_gbps": 32}))
    requests = [{"arrival_s": i, "max_tokens": 1, "segments": [[f"document/{i % 3}", 960], [f"own/{i}", 32]]} for i in range(12)]
    workload.write_text("".join(json.dumps(request) + "\n" for request in requests))

    def simulate(*args):
        command = [SKEIN_BIN, "sim", "--device", device, "--model", MODEL, "--workload", workload, "--preset", "chunked-fcfs", "--vocab", 512,
                   "--kv-cache-memory", 40 * 32 * BYTES_PER_TOKEN, "--json", report, *args]
        run = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60)
        return run, json.loads(report.read_text()) if run.returncode == 0 else None

    _, without = simulate()
    _, with_host = simulate("--kv-offload-memory", 100 * 32 * BYTES_PER_TOKEN)
    assert without["num_kv_blocks"] == with_host["num_kv_blocks"] == 40
    assert without["completed"] == with_host["completed"] == 12
    assert with_host["step_s"] < 0.5 * without["step_s"]
    # 12 documents of 30 blocks go to the host or come back at most twice each: the time of their bytes at 1 MB/s.
    device.write_text(json.dumps(DEVICE | {"host_gbps": 0.001}))
    _, slow = simulate("--kv-offload-memory", 100 * 32 * BYTES_PER_TOKEN)
    bytes_copied = (slow["step_s"] - with_host["step_s"]) * 1e6
    assert 9 * 30 * 32 * BYTES_PER_TOKEN < bytes_copied < 2 * 12 * 32 * 32 * BYTES_PER_TOKEN
    assert "kv-offload-memory of 1 is 0 blocks" in simulate("--kv-offload-memory", 1)[0].stderr
    assert "kv-offload-memory needs prefix caching" in simulate(
        "--kv-offload-memory", "1GiB", "--no-enable-prefix-caching")[0].stderr
    device.write_text(json.dumps(DEVICE))
    assert "needs a device with a link to the host (host_gbps)" in simulate("--kv-offload-memory", "1GiB")[0].stderr
