"""--stop-table and --stop-seed reach the stop rule, in `skein sim` and `skein serve`."""
import json
import subprocess

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "models/default"
DEVICE = {"name": "a small device", "tflops": {"bf16": 0.5}, "bandwidth_gbps": 20, "memory_gb": 2, "step_us": 50,
          "matmul_efficiency": [[1, 0.2], [256, 0.8]], "attention_efficiency": [[1, 0.2]]}
VOCAB = 512  # of the prompts' tokens
HOMOGENEOUS = ("--scheduling", "feather", "--max-num-seqs", 8, "--stop-constants", "max-loss=1")  # decides from the first batch on
BANDIT = ("--stop-rule", "bandit")


def skein(*args):
    run = subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    """Three groups of eight requests, all at once."""
    path = tmp_path_factory.mktemp("workload") / "load.jsonl"
    requests = [{"arrival_s": 0, "class": "load", "max_tokens": 60, "segments": [[f"group/{i % 3}", 64], [f"own/{i}", 8]]} for i in range(24)]
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return path


def learned(folder, workload, table, *options):
    """What the table holds after a simulation with it."""
    device = folder / "device.json"
    device.write_text(json.dumps(DEVICE))
    skein("sim", "--device", device, "--model", MODEL, "--workload", workload, "--vocab", VOCAB, *HOMOGENEOUS,
          *(() if "--stop-rule" in options else BANDIT), "--stop-table", table, *options)
    return json.loads(table.read_text())


def test_simulations_continue_from_their_table(tmp_path, workload):
    first = learned(tmp_path, workload, tmp_path / "table.json")
    assert first["policy"] == "bandit" and first["decisions"] >= first["batches"] > 0 and first["states"]
    second = learned(tmp_path, workload, tmp_path / "table.json")
    assert second["decisions"] > first["decisions"] and second["batches"] > first["batches"]
    # It is the table, not chance: another that begins with nothing learns what the first did.
    assert learned(tmp_path, workload, tmp_path / "other.json") == first


def test_a_server_continues_from_its_table(tmp_path, workload):
    table = tmp_path / "table.json"
    before = {"policy": "bandit", "batches": 10**6, "decisions": 10**7, "best_reward": 1.0, "states": []}
    table.write_text(json.dumps(before))
    with SkeinServer(MODEL, *HOMOGENEOUS, *BANDIT, "--stop-table", table) as server:
        skein("bench", "serve", "--url", server.url, "--workload", workload, "--vocab", VOCAB, "--ignore-eos", "--concurrency", 24)
        assert server.stop() == 0
    after = json.loads(table.read_text())
    assert after["batches"] > before["batches"] and after["decisions"] > before["decisions"] and after["states"]


def test_the_seed_decides_what_q_learning_tries(tmp_path, workload):
    def with_seed(seed, name):
        return learned(tmp_path, workload, tmp_path / name, "--stop-rule", "q-learning", "--stop-seed", seed)

    one = with_seed(1, "one.json")
    assert one["policy"] == "q-learning" and one["decisions"] > 10
    assert with_seed(1, "again.json") == one
    assert with_seed(2, "two.json") != one
