"""`skein sim` beside `skein bench serve`, one workload, and on a description that `skein sim calibrate` has made."""
import json
import re
import subprocess

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "models/default"
VOCAB = 512  # of the prompts' tokens
DEVICE = {"name": "a small device", "tflops": {"bf16": 0.5}, "bandwidth_gbps": 20, "memory_gb": 2, "step_us": 50,
          "matmul_efficiency": [[1, 0.2], [256, 0.8]], "attention_efficiency": [[1, 0.2]]}
# What only one of the two knows.
SERVE_ONLY = {"base_url"}
SIM_ONLY = {"device", "preset", "num_kv_blocks", "wall_s", "num_preemptions", "step_s", "decode_steps", "mean_decode_batch",
            "kv_bytes_asked_per_step", "kv_bytes_unique_per_step", "prefix_groups_joined", "prefix_groups_overdue", "prefix_groups_stops"}


def skein(*args):
    run = subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    path = tmp_path_factory.mktemp("workload") / "load.jsonl"
    requests = [{"arrival_s": 0.01 * i, "class": "short" if i % 2 else "long", "max_tokens": 3 if i % 2 else 1,
                 "segments": [["shared", 64], [f"own/{i}", 20 + 10 * i]], "slo_ttft_ms": 10_000} for i in range(10)]
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return path


def simulate(folder, device, workload):
    path = folder / "sim.json"
    skein("sim", "--device", device, "--model", MODEL, "--workload", workload, "--preset", "prefill-only", "--vocab", VOCAB,
          "--json", path)
    return json.loads(path.read_text())


def test_both_reports_have_the_same_fields(tmp_path, workload):
    device = tmp_path / "device.json"
    device.write_text(json.dumps(DEVICE))
    simulated = simulate(tmp_path, device, workload)
    with SkeinServer(MODEL, "--scheduling", "prefill-only") as server:
        skein("bench", "serve", "--url", server.url, "--workload", workload, "--vocab", VOCAB, "--ignore-eos", "--json",
              tmp_path / "real.json")
    real = json.loads((tmp_path / "real.json").read_text())
    assert real.keys() - simulated.keys() == SERVE_ONLY
    assert simulated.keys() - real.keys() == SIM_ONLY
    shared = [key for key in real if key in simulated]
    assert shared == [key for key in simulated if key in real]
    assert {"duration", "completed", "request_throughput", "mean_e2el_ms", "p99_ttft_ms", "goodput"} <= set(shared)
    assert real["classes"].keys() == simulated["classes"].keys() == {"long", "short"}
    for name, figures in real["classes"].items():
        assert figures.keys() == simulated["classes"][name].keys()
    for key in ("num_prompts", "completed", "failed", "total_input_tokens", "total_output_tokens", "errors"):
        assert real[key] == simulated[key], key
    assert real["completed"] == 10
    assert real["total_output_tokens"] == 20


def test_a_calibration_describes_a_device_that_can_be_simulated(tmp_path, workload):
    device = tmp_path / "device.json"
    table = skein("sim", "calibrate", MODEL, "--out", device, "--max-tokens", 32, "--context", 64, "--rounds", 1,
                  "--request-us", 500)
    points = re.findall(r"^ *(\d+) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +-?[\d.]+%$", table, re.MULTILINE)
    # Of 1, 4, 16 and 32 tokens alone and behind the context, and of many rows.
    assert [tuple(map(int, point[:3])) for point in points] == [
        (1, tokens, cached) for tokens in (1, 4, 16, 32) for cached in (0, 64)] + [(8, 16, 0)]
    assert all(float(measured) > 0 and float(described) > 0 for *_, measured, described in points)
    described = json.loads(device.read_text())
    assert described["tflops"].keys() == {"bf16"}
    assert described["tflops"]["bf16"] > 0 and described["bandwidth_gbps"] > 0 and described["memory_gb"] > 0
    assert described["request_us"] == 500
    assert [rows for rows, _ in described["matmul_efficiency"]] == [1, 4, 16, 32]
    for key in ("matmul_efficiency", "attention_efficiency"):
        assert described[key] and all(rows > 0 and share > 0 for rows, share in described[key])
    report = simulate(tmp_path, device, workload)
    assert report["completed"] == 10 and report["failed"] == 0
    assert report["step_s"] > 0 and report["mean_e2el_ms"] > 0.5
