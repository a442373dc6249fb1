"""What `skein bench limits`, `kernels`, `forward`, `preemption`, `jct`, `serve` and `sched` write with --json: the members that others read."""
import json
import pathlib
import subprocess

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "tests/data/models/qwen3-bf16"
ENCODER = ROOT / "tests/data/encoders/bert"
LIMITS = {"compute_tflops", "read_gbps"}
GEMM = {"model", "name", "m", "k", "n", "dtype", "tflops", "gbps", "fraction", "onednn_tflops", "onednn_dtype"}
PREFILL = {"prompt_tokens", "tokens_per_s", "tflops", "fraction"}
DECODE = {"batch", "context", "tokens_per_s", "gbps", "fraction"}
DRAWS = {"logits", "parameters", "us"}
BLOCKING = {"granularity", "mean_ms", "p50_ms", "p99_ms", "max_ms"}
TREE = {"requests", "tokens", "insert_ns", "add_ns", "finish_ns", "find_best_ns"}
OVERHEAD = {"policy", "prefix_tokens", "waiting", "us_per_round"}
ROUNDS = {"order", "waiting", "us_per_round", "p99_us"}
NAMES = {"model", "name", "dtype", "onednn_dtype", "logits", "parameters", "policy", "order"}  # the others are positive numbers

pytestmark = pytest.mark.skipif(" avx2 " not in pathlib.Path("/proc/cpuinfo").read_text(),
                                reason="the machine's limits are measured with AVX2")


def bench(tmp_path, *args):
    path = tmp_path / "result.json"
    run = subprocess.run([SKEIN_BIN, "bench", *map(str, args), "--json", str(path)], capture_output=True,
                         text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(path.read_text())


def check_rows(rows, members, may_be_null=()):
    """Each row has exactly these members, with values that say something."""
    assert rows
    for row in rows:
        assert set(row) == members
        for name, value in row.items():
            if name in NAMES:
                assert isinstance(value, str) and value
            elif value is not None or name not in may_be_null:
                assert not isinstance(value, bool) and value > 0, (name, row)


def test_limits(tmp_path):
    result = bench(tmp_path, "limits", "--runs", 1)
    assert LIMITS <= set(result["limits"])
    assert all(value > 0 for value in result["limits"].values())


def test_kernels(tmp_path):
    result = bench(tmp_path, "kernels", "--model", "Qwen3-0.6B", "--rows", "1,2", "--samples", 1)
    check_rows([result["limits"]], LIMITS)
    check_rows(result["gemm"], GEMM, may_be_null={"onednn_tflops", "onednn_dtype"})
    products = ["qkv", "o", "gate_up", "down", "output"]
    measured = [(row["name"], row["m"]) for row in result["gemm"]]
    assert measured == [(name, m) for name in products for m in (1, 2)]
    assert {(row["model"], row["dtype"]) for row in result["gemm"]} == {("Qwen3-0.6B", "bf16")}
    check_rows(result["draws"], DRAWS)


def test_forward(tmp_path):
    result = bench(tmp_path, "forward", MODEL, "--prompt-tokens", "8,40", "--batch", "1,3", "--context", 16,
                   "--decode", 2, "--repetitions", 1)
    check_rows([result["limits"]], LIMITS)
    check_rows(result["prefill"], PREFILL)
    assert [row["prompt_tokens"] for row in result["prefill"]] == [8, 40]
    assert result["load_s"] > 0 and result["resident_mib"] > 0
    check_rows(result["decode"], DECODE)
    assert [(row["batch"], row["context"]) for row in result["decode"]] == [(1, 16), (3, 16)]


def test_forward_of_a_model_without_an_output_matrix():
    ended = subprocess.run([SKEIN_BIN, "bench", "forward", str(ENCODER), "--prompt-tokens", "16", "--context", "16"], capture_output=True, text=True,
                           timeout=60)
    assert ended.returncode == 1
    assert f"only models that predict tokens can be timed; {ENCODER} has no output matrix" in ended.stderr


def test_preemption(tmp_path):
    result = bench(tmp_path, "preemption", MODEL, "--prompt-tokens", 250, "--count", 20)
    assert (result["prompt_tokens"], result["count"]) == (250, 20)
    assert [row["granularity"] for row in result["granularities"]] == ["op-tile", "op", "layer", "chunk"]
    for row in result["granularities"]:
        assert BLOCKING <= set(row)
        assert row["count"] == (20 if row["granularity"] != "chunk" else result["chunk_count"])
        assert 0 <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] and row["max_ms"] > 0
        assert 0 < row["mean_ms"] <= row["max_ms"] * (1 + 1e-9)


def test_jct(tmp_path):
    options = ["jct", MODEL, "--every", 40, "--max-tokens", 120, "--repetitions", 1]
    pairs = [(40, 0), (80, 0), (80, 40), (120, 0), (120, 40), (120, 80)]
    for extra in ([], ["--no-prediction"]):
        result = bench(tmp_path, *options, *extra)
        assert [(pair["input_tokens"], pair["cached_tokens"]) for pair in result["pairs"]] == pairs
        assert all(pair["measured_us"] > 0 for pair in result["pairs"])
        assert ("ttft_prediction" in result) == (not extra)


def test_goodput(tmp_path):
    """With deadlines that all requests meet, that none does, and without."""
    workload = tmp_path / "load.jsonl"
    workload.write_text("".join(json.dumps({"arrival_s": 0.01 * i, "max_tokens": 2, "segments": [[f"own/{i}", 20 + i]]}) + "\n"
                                for i in range(6)))
    with SkeinServer(ROOT / "models/default") as server:
        def serve(*goodput):
            return bench(tmp_path, "serve", "--url", server.url, "--workload", workload, "--vocab", 512, "--ignore-eos", *goodput)

        met = serve("--goodput", "ttft:60000")
        assert met["completed"] == 6
        assert met["goodput"] == met["request_goodput"] == met["request_throughput"] > 0
        assert met["slo_attainment"] == 1
        missed = serve("--goodput", "ttft:0.001")
        assert missed["completed"] == 6
        assert (missed["goodput"], missed["slo_attainment"]) == (0, 0)
        one_missed = serve("--goodput", "ttft:60000", "e2el:0.001")
        assert (one_missed["goodput"], one_missed["slo_attainment"]) == (0, 0)
        assert serve()["goodput"] is None


def test_sched(tmp_path):
    result = bench(tmp_path, "sched", "--requests", 200, "--tokens", 300, "--suffix", 10, "--groups", 4, "--batch", 50, "--turns", 500,
                   "--queues", "10,20", "--rounds", 50, "--waiting", 30)
    tree = result["tree"]
    assert TREE <= set(tree)
    assert (tree["requests"], tree["tokens"], tree["groups"], tree["suffix_tokens"], tree["batch"]) == (200, 300, 4, 10, 50)
    assert all(tree[name] > 0 for name in ("insert_ns", "add_ns", "finish_ns")) and tree["find_best_ns"] >= 0
    check_rows(result["overhead"], OVERHEAD)
    assert {(row["policy"], row["prefix_tokens"], row["waiting"]) for row in result["overhead"]} == {
        (policy, tokens, 30) for policy in ("lpm", "dfs-weight", "prefix-homogeneous", "prefix-homogeneous-radix") for tokens in (1000, 2000, 5000, 10000, 20000)}
    check_rows(result["rounds"], ROUNDS)
    assert [(row["order"], row["waiting"]) for row in result["rounds"]] == [
        (order, waiting) for order in ("fcfs", "srjf", "srjf-calibrated") for waiting in (10, 20)]
