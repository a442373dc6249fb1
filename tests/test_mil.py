"""`skein model mil`: what it writes, what it promises, what it refuses."""
import json
import subprocess

import pytest
from skein_server import ROOT, SKEIN_BIN

MODEL = ROOT / "models/default"
SHAPE = ROOT / "devices/models/llama-3.1-8b"  # a config.json is all that a plan needs
MODES = ["paged", "chunked", "drop-kv", "hybrid-collected", "hybrid-preallocated", "hybrid", "hybrid-prefix"]


def run_mil(*args):
    return subprocess.run([SKEIN_BIN, "model", "mil", *map(str, args)], capture_output=True, text=True, timeout=300)


def mil(folder, *args):
    """What `--json` holds."""
    path = folder / "mil.json"
    run = run_mil(*args, "--json", path)
    assert run.returncode == 0, run.stderr
    return json.loads(path.read_text())


def test_the_plan_names_the_modes_and_their_longest_inputs(tmp_path):
    plan = mil(tmp_path, MODEL, "--memory", "64MiB")
    assert plan["memory_bytes"] == 64 << 20
    assert [mode["mode"] for mode in plan["modes"]] == MODES
    assert all(mode["max_input_tokens"] > 0 for mode in plan["modes"])


def test_each_mode_of_a_large_shape_reaches_further_than_the_one_before(tmp_path):
    found = {mode["mode"]: mode["max_input_tokens"]
             for mode in mil(tmp_path, SHAPE, "--memory", "2GiB", "--threads", 2)["modes"]}
    lengths = [found[mode] for mode in MODES[:-1]]
    assert lengths == sorted(set(lengths))
    # What keeps a prefix besides needs room for a block of it.
    assert found["hybrid-preallocated"] < found["hybrid-prefix"] <= found["hybrid"]


def test_more_memory_allows_longer_inputs(tmp_path):
    small, large = (mil(tmp_path, SHAPE, "--memory", memory, "--threads", 2)["modes"] for memory in ("1GiB", "2GiB"))
    for less, more in zip(small, large):
        assert 0 < less["max_input_tokens"] < more["max_input_tokens"], less["mode"]


# The margin that a plan leaves for stacks and the allocator is some 2.5 MiB with one thread. In the larger memory 5 % is more.
@pytest.mark.parametrize("mode,mib,surely_over", [("paged", 64, True), ("hybrid", 24, False)])
def test_a_run_just_as_long_as_planned_nearly_fills_the_memory(tmp_path, long_context, mode, mib, surely_over):
    memory = f"{mib}MiB"
    found = mil(tmp_path, long_context, "--modes", mode, "--threads", 1, "--memory", memory, "--prove", memory)
    assert found["prove_bytes"] == found["memory_bytes"] == mib << 20
    under, over = (found["modes"][0]["proof"][side] for side in ("under", "over"))
    assert under["input_tokens"] == found["modes"][0]["max_input_tokens"] < over["input_tokens"]
    assert under["planned_bytes"] <= found["prove_bytes"] < over["planned_bytes"]
    assert under["fits"] and under["seconds"] > 0
    assert 0.8 * found["prove_bytes"] < under["peak_bytes"] <= found["prove_bytes"]
    assert over["fits"] == (over["peak_bytes"] <= found["prove_bytes"])
    assert not under["stopped"] and (over["stopped"] or over["seconds"] > 0)
    assert not (over["stopped"] and over["fits"])
    if surely_over:
        assert not over["fits"]


def test_times_say_how_many_tokens_a_mode_takes_at_a_time(tmp_path):
    times = mil(tmp_path, MODEL, "--threads", 1, "--modes", "paged,chunked,drop-kv,hybrid", "--chunks", "16,32", "--time", 600,
                "--repetitions", 1, "--warm-up", 40)["times"]
    assert [(time["mode"], time["chunk_tokens"]) for time in times] == [
        ("paged", 600), ("chunked", 512), ("drop-kv", 600), ("hybrid", 16), ("hybrid", 32)]
    assert all(time["input_tokens"] == 600 and len(time["seconds"]) == 1 and time["tokens_per_s"] > 0 for time in times)


def test_a_plan_for_gpus_counts_the_weights_and_has_the_modes_of_a_device(tmp_path):
    small, large = mil(tmp_path, SHAPE, "--gpu", "24GB,80GB")["gpus"]
    assert small["weight_bytes"] == 16_060_522_496 and small["memory_bytes"] == (24_000_000_000 - small["weight_bytes"]) // 10 * 9
    for gpu in (small, large):
        found = {mode["mode"]: mode["max_input_tokens"] for mode in gpu["modes"]}
        assert list(found) == ["paged", "chunked", "drop-kv", "hybrid", "hybrid-prefix"]
        assert 0 < found["paged"] < found["chunked"] < found["drop-kv"] < found["hybrid-prefix"] <= found["hybrid"]
    assert all(less["max_input_tokens"] < more["max_input_tokens"] for less, more in zip(small["modes"], large["modes"]))
    run = run_mil(SHAPE, "--gpu", "16GB")
    assert run.returncode == 1 and "gpu is 16000000000 bytes, of which the weights take 16060522496" in run.stderr
    run = run_mil(SHAPE, "--gpu", "24GB", "--time", 100)
    assert run.returncode != 0 and "--gpu" in run.stderr


@pytest.mark.parametrize("option", ["memory", "prove"])
def test_a_bad_amount_of_memory_is_refused_by_name(tmp_path, option):
    path = tmp_path / "mil.json"
    run = run_mil(MODEL, f"--{option}", "lots", "--json", path)
    assert run.returncode == 1
    assert f"{option}: 'lots' is not an amount of memory" in run.stderr
    assert not path.exists()
