"""scripts/exp_feather keeps what it has measured, and tools/plot_feather.py writes a page of it: of the names that the script gives its
runs, with figures made up here."""
import importlib.machinery
import importlib.util
import json
import sys

import pytest
from skein_server import ROOT

TREE = {"requests": 200, "tokens": 300, "groups": 5, "suffix_tokens": 20, "batch": 50, "chunk_tokens": 32, "nodes": 206}
OPERATIONS = {"hash_ns": 5.0, "insert_ns": 290.0, "add_ns": 4000.0, "finish_ns": 200.0, "find_best_ns": 70.0}
SCHED = {"date": "20260101-000000", "tree": TREE | OPERATIONS, "chunks": [{"construction": "chained", "chunk_tokens": 1} | OPERATIONS],
         "overhead": [{"policy": policy, "prefix_tokens": tokens, "waiting": 500, "us_per_round": us * tokens / 1000}
                      for tokens in (1000, 5000, 20000) for policy, us in (("lpm", 45.0), ("dfs-weight", 30.0), ("prefix-homogeneous", 0.1), ("prefix-homogeneous-radix", 35.0))],
         "rounds": [{"order": "fcfs", "waiting": 10, "us_per_round": 1.0, "p99_us": 2.0}]}


@pytest.fixture
def script(monkeypatch):
    """scripts/exp_feather as a module, no part of which runs the program."""
    loader = importlib.machinery.SourceFileLoader("exp_feather", str(ROOT / "scripts/exp_feather"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("exp_feather", loader))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "random_model", lambda shape: shape)
    monkeypatch.setattr(module, "machine", lambda: "a machine")
    monkeypatch.setattr(module, "sched", lambda folder, tiny: iter([SCHED]))
    return module


def page(script, folder, **parts):
    """The page of these parts' findings."""
    (folder / "data").mkdir(exist_ok=True)
    data = {part: {"command": "scripts/exp_feather", "machine": "a machine", "found": found, "seconds": 1} for part, found in parts.items()}
    (folder / "data/feather.json").write_text(json.dumps(data))
    script.plot_feather.write_page(folder)
    return (folder / "feather.md").read_text()


def served(model, load, systems, folder, outputs, concurrency=None):
    """What serve would find: with shared-prefix attention five times as much, with prefix-homogeneous a tenth more; nothing where nothing is
    shared; in static batches a fifth more where they are pure."""
    def speed(name):
        if name == "static":
            return 60.0 if concurrency == 8 else 50.0
        return 100.0 if load.shared == 0 else (50.0 if "shared" in name else 10.0) * (1.1 if "prefix-homogeneous never" in name else 1)

    return {output: {name: {"scheduler_share": 0.001, "stops": 0.0, "runs": [speed(name)] * outputs.count(output), "tokens_per_s": speed(name), "tpot_ms": 17.0,
                            "itl_p99_ms": 30.0, "p95_ttft_ms": 2000.0, "batch": 7.5, "kv_tokens_asked": 1e5, "kv_tokens_unique": 1e4, "decode_steps": 9, "step_ms": 12.5}
                     for name in systems} for output in outputs}


def simulated(self, number, system, load, reads, device, model, slots, runs, extra, constants, last, steps):
    """What Simulator.run would find."""
    assert script_rounds == self.rounds
    shipped = system == ["--preset", "feather"]
    speed = 97.0 if shipped and reads == "once" else 100.0
    if "request-level" in system and slots <= 100:  # pure batches
        speed = {"each": 101.0, "cached": 120.0 if load[1][-1]["max_tokens"] > 5 else 80.0, "once": 50.0}[reads]
    report = {"tokens_per_s": speed, "median_tpot_ms": 10.0, "p95_ttft_ms": 100.0, "mean_ttft_ms": 50.0, "mean_decode_batch": 5.0, "decode_steps": 9,
              "kv_bytes_asked_per_step": 2e9, "kv_bytes_unique_per_step": 1e9, "num_preemptions": 0, "prefix_groups_overdue": 3, "prefix_groups_stops": 1, "wall_s": 1.0, "hits": 0.5,
              "curve": [[1.0, 5.0, 90.0], [2.0, 5.0, 110.0]], "classes": {f"{rate} requests/s": {"median_tpot_ms": 1.0, "p95_ttft_ms": 2.0} for rate in (5, 10, 20)}}
    return [report] * runs


# Of the prefix of 5,000 tokens, and of first come, first served.
script_rounds = {"lpm": 225.0, "dfs-weight": 150.0, "prefix-homogeneous": 0.5, "prefix-homogeneous-radix": 175.0, "fcfs": 1.0}


def test_a_round_takes_what_was_measured_for_its_rule(script):
    took = {name: script.round_us(system, script_rounds) for name, system in script.SYSTEMS.items()}
    assert (took["lpm"], took["dfs-weight"], took["fill (FCFS)"]) == (225, 150, 1)
    assert took["feather"] == took["prefix-homogeneous never"] == 0


def test_a_curve_has_the_steps_that_decode(script, tmp_path):
    lines = ["0.5 0 100"] + [f"{1 + i / 100:.2f} {10 + i % 2} 0" for i in range(100)]
    (tmp_path / "steps.txt").write_text("\n".join(lines))
    (one, other) = script.curve_of(tmp_path / "steps.txt")
    assert one == [1.49, 10.5, round(525 / 1.49, 1)] and other == [1.99, 10.5, 1050.0]


def test_rounds_stand_beside_what_is_published(script, tmp_path):
    text = page(script, tmp_path, sched=SCHED)
    assert "| prefix tokens | lpm | dfs-weight | prefix-homogeneous | prefix-homogeneous-radix | lpm / prefix-homogeneous | dfs-weight / prefix-homogeneous | published |" in text
    assert "| 1000 | 45.0 | 30.0 | 0.1 | 35.0 | 450 | 300 |  |" in text
    assert "| 20000 | 900.0 | 600.0 | 2.0 | 700.0 | 450 | 300 | about 1,000 |" in text
    assert "| add to batch | 4000 | 3,000 | **missed** | 11,100 |" in text


def test_each_section_of_the_servers_has_its_place(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "serve", served)
    headings = {"unshared": "### Nothing shared", "default": "### The default workload", "batches": "### Batch size against purity",
                "foreign": "### One foreign request", "fraction": "### Shared fraction", "long": "### The same with 48 outputs"}
    measured = []
    for found in script.here("a shape", False, False, tmp_path, "scripts/exp_feather", [], {}):
        measured.append(list(found["sections"])[-1])
        text = page(script, tmp_path, here=found)
        assert [name for name, heading in headings.items() if heading in text] == [name for name in headings if name in measured]
        missing = [name for name in headings if name not in measured]
        assert ("missing: " + ", ".join(missing) + "." in text) == bool(missing)
    assert sorted(measured) == sorted(headings)
    prose = " ".join(text.split())
    assert "prefix-homogeneous never, shared / fill, plain: 5.50 (target 5): reached" in prose and "Why the first target is missed" not in prose
    assert "fill has all 5, prefix-homogeneous the first 3 (64 rows of groups of about 26)" in prose
    assert "which is the same work: 1.00." in prose and "failed" not in prose
    # Outputs, to one batch; tokens/s, step, batch, bytes asked and unique. The others have TPOT, too.
    assert "| 1 x 64 | 32 | 1.00 | 50.0 | 12.5 | 7.5 | 11.47 | 1.15 |" in text
    assert "| 8 x 8 | 32 | 1.20 | 60.0 | 12.5 | 7.5 | 11.47 | 1.15 |" in text
    assert "| 1 | shared | 50.0 | 12.5 | 17 | 7.5 | 11.47 | 1.15 |" in text
    assert "| 0.5 | plain | 10.0 | 12.5 | 17 | 7.5 | 11.47 | 1.15 |" in text


def test_a_section_alone_keeps_the_others(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "serve", served)
    here = lambda names, kept: list(script.here("a shape", False, False, tmp_path, "scripts/exp_feather", names, kept))[-1]
    whole = here([], {})
    del whole["sections"]["foreign"]
    whole["missing"] = ["foreign"]
    assert "### One foreign request" not in page(script, tmp_path, here=whole)
    monkeypatch.setattr(script, "machine", lambda: "another machine, 2 CPUs without AMX")
    found = here(["foreign"], whole)
    assert sorted(found["sections"]) == sorted(script.SECTIONS) and found["missing"] == []
    text = page(script, tmp_path, here=found)
    assert text.count("Made by `scripts/exp_feather foreign` in 0 s on another machine, 2 CPUs without AMX.") == 1
    assert text.count("reads a common block once for 16 queries") == 1
    with pytest.raises(SystemExit, match="other sizes"):
        here(["foreign"], whole | {"slots": 3})


def test_what_is_simulated_has_its_place(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script.Simulator, "run", simulated)
    (found,) = script.simulated(True, tmp_path, {"sched": {"found": SCHED}})
    text = page(script, tmp_path, simulated=found)
    for name in script.SYSTEMS:
        for reads in ("each", "cached", "once"):
            assert f"| {name}, {reads} |" in text
    assert "| 8 x 100 | 80 | 120 | 833.3 | 5 | 2.00 | 1.00 |" in text
    assert "| each | 5 | about 20 | 1.01 | 1.01 |" in text
    assert "| cached | 100 | about 20 | 0.80 | 1.20 |" in text
    assert "| once | none | about 20 | 0.50 | 0.50 |" in text
    assert "| 5 | once | 100, 0.1 | 100, 0.1 | 100, 0.1 | 97, 0.1 | 0.97, 1.00 |" in text
    assert "`feather` misses at: groups 5, once (0.97, 1.00);" in text
    assert "| cold 100 | once | feather | 10 | 3 | 100 | 1.00 | 3 | 0.1 | 5 | 1.00 |" in text
    assert "| default | cached | fill (FCFS) |  |  | 100 | 1.00 | 3 | 0.1 | 5 | 1.00 |" in text
    assert "| default, RTX 6000 Ada, feather / fill | 4 (vLLM-FCFS) | 1.00 | 1.00 | 0.97 | 0.97 | **missed** |" in text
    assert "feather / the best other rule, whole run: 1.00 (target 0.95): reached." in text


def test_data_of_an_earlier_form_are_not_shown(script, tmp_path):
    text = page(script, tmp_path, here={"scale": 1, "default": {}}, simulated={"default": {}})
    assert text.count("of an earlier form") == 2


def test_a_late_failure_keeps_the_earlier_sections(script, monkeypatch, tmp_path):
    calls = []

    def fails_late(*args, **options):
        calls.append(args)
        if len(calls) == 4:  # one for what is unshared, two for the default load
            raise RuntimeError("a late failure")
        return served(*args, **options)

    monkeypatch.setattr(script, "serve", fails_late)
    page(script, tmp_path, here={"scale": 1, "default": {}}, simulated={"default": {}})
    monkeypatch.setattr(sys, "argv", ["exp_feather", "--real", "--quick", "--model", "tiny", "--out", str(tmp_path)])
    with pytest.raises(RuntimeError, match="a late failure"):
        script.main()
    data = json.loads((tmp_path / "data/feather.json").read_text())
    assert data["sched"]["found"] == SCHED
    assert list(data["here"]["found"]["sections"]) == ["unshared", "default"]
    assert data["here"]["found"]["missing"] == ["batches", "foreign", "fraction"]
    assert data["simulated"]["found"] == {"default": {}}
    assert "missing: batches, foreign, fraction." in (tmp_path / "feather.md").read_text()


def test_steps_are_those_of_the_passes_asked_for(script, tmp_path):
    """Two passes of two requests behind a head; 64 tokens are shared."""
    load = script.Load.groups(2, 1, 64, 4, 3, 2)
    events = [{"event": "arrive", "id": i, "prompt": [*range(64), *[1000 + i] * 4]} for i in range(1, 6)]

    def step(begin_us, prefills, decodes, end_us):
        events.append({"event": "plan", "t": begin_us, "prefills": prefills, "decodes": [[request, 0, end - 1, end, 1, 0, 0] for request, end in decodes]})
        events.append({"event": "complete", "t": end_us})

    step(0, [], [(2, 69), (3, 69)], 2000)
    step(5000, [[5, 0, 0, 68, 1, 0, 0]], [(4, 69)], 9000)
    step(10000, [], [(4, 70), (5, 69)], 13000)
    record = tmp_path / "record.jsonl"
    record.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert script.steps_of(record, load, [0]) == {"batch": 2, "kv_tokens_asked": 138, "kv_tokens_unique": 138 - 64, "decode_steps": 1, "step_ms": 2}
    assert script.steps_of(record, load, [1]) == {"batch": 1.5, "kv_tokens_asked": (69 + 139) / 2, "kv_tokens_unique": (69 + 139 - 64) / 2, "decode_steps": 2, "step_ms": 3}
