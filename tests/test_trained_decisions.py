"""What `sysone fit` and `laya train` write is served as it is, and measured as these packages measure it.

tools/train_tiny_decisions.py trained the models of tests/data/trained and asked them about rows that they never saw.
"""
import json
import subprocess

import pytest

from decision_bodies import answer_of, as_decisions, probabilities
from skein_server import ROOT, SKEIN_BIN, SkeinServer

FOLDER = ROOT / "tests/data/trained"
HELD_OUT = FOLDER / "held-out.jsonl"
ROWS = [json.loads(line) for line in HELD_OUT.read_text().splitlines()]
MODELS = ["sysone", "sysone-lora", "laya"]


def golden_of(name):
    return json.loads((FOLDER / name / "golden.json").read_text())


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_the_package(name):
    golden = golden_of(name)
    right = asked = 0
    with SkeinServer(FOLDER / name, "--dtype", "f32") as server:
        for i, (row, questions) in enumerate(zip(ROWS, golden["questions"], strict=True)):
            body = {"state": row["state"], "questions": row["questions"]}
            for answer in answer_of(server, "/v1/decisions", as_decisions(body))["answers"]:
                question = questions[answer["name"]]
                # sysone rounds to bf16; the logits move that far where a rounding hangs on a sum's order. Laya's logits
                # are up to 2.5e-5 from those in f64, and Skein's as well: with a temperature of 0.5 at least, that
                # moves a probability by 2.5e-5 at most.
                bound = 1e-5 + question["slack"] if "slack" in question else 2.5e-5
                got = probabilities(answer)
                assert max(abs(p - q) for p, q in zip(got, question["probabilities"], strict=True)) < bound
                asked += 1
                if answer["name"] == "colour":
                    right += answer["choice"] == row["expected"]["colour"]
            if golden["predicted"] is not None:
                served = answer_of(server, "/v1/systemone", body)
                assert served["usage"] == golden["predicted"][i]["usage"]
                for key, answer in golden["predicted"][i]["answers"].items():
                    slack = questions[key]["slack"]
                    assert served["answers"][key].keys() == answer.keys()
                    assert abs(served["answers"][key]["answer_confidence"] - answer["answer_confidence"]) < 1.01e-4 + slack
    assert asked == 3 * len(ROWS)
    assert right > 0.8 * len(ROWS)  # chance: a third


@pytest.mark.parametrize("name", ["sysone", "sysone-lora"])
def test_quality_is_measured_as_by_the_package(name, tmp_path):
    out = tmp_path / "quality.json"
    done = subprocess.run([SKEIN_BIN, "bench", "quality", FOLDER / name, "--dtype", "f32", "--data", HELD_OUT, "--no-flips",
                           "--json", out], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = golden_of(name)["figures"]["by_question"]
    found = {}
    for method in json.loads(out.read_text())["methods"]:
        assert method["method"] == "head" and method["chosen"]
        found |= method["tasks"]
        for task, confusion in method["confusion"].items():
            counts = confusion["counts"]
            assert sum(map(sum, counts)) == len(ROWS)
            assert sum(counts[i][i] for i in range(len(counts))) == round(figures[task]["accuracy"] * len(ROWS))
        assert [t["target_accuracy"] for t in method["thresholds"]] == [0.8, 0.9, 0.95, 0.99]
    for task, expected in figures.items():
        assert found[task]["items"] == expected["n"] == len(ROWS)
        assert found[task]["accuracy"] == pytest.approx(expected["accuracy"], abs=1e-9)
        assert found[task]["brier"] == pytest.approx(expected["brier"], abs=1e-3)
        assert found[task]["cross_entropy"] == pytest.approx(expected["log_loss"], abs=1e-3)
    assert "right answers by row" in done.stdout and "threshold" in done.stdout


def test_models_stand_side_by_side_and_what_a_head_does_not_take_is_refused(tmp_path):
    first = tmp_path / "laya.json"
    common = ["bench", "quality", "--data", HELD_OUT, "--no-flips"]
    run = [SKEIN_BIN, *common[:2]]
    done = subprocess.run([*run, FOLDER / "laya", *common[2:], "--json", first], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*run, FOLDER / "sysone", *common[2:], "--beside", first], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    table = done.stdout[done.stdout.index("choice, side by side"):]
    assert "sysone" in table and "laya" in table
    for option in (["--write"], ["--methods", "words"], ["--examples", "2"]):
        done = subprocess.run([*run, FOLDER / "sysone", *common[2:], *option], capture_output=True, text=True, timeout=120)
        assert done.returncode != 0 and option[0] in done.stderr and "head" in done.stderr
