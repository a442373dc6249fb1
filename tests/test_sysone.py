"""Decision models of the package `sysone` over HTTP, against the package and its server (tests/data/sysone)."""
import json
import math
import subprocess

import pytest

from decision_bodies import (answer_of, as_decisions, assert_equal_within,
                             assert_same_alone_and_under_load, post, probabilities)
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODELS = {path.name: path for path in sorted((ROOT / "tests/data/sysone").iterdir()) if path.is_dir()}
EXACT = ["--dtype", "f32", "--max-num-batched-tokens", "6144"]
# The largest change of a probability by a change of its logit of 1, with the least temperature: 1 / (4 * 0.6).
STEEPEST = 0.5


def rows_of(name):
    return json.loads((MODELS[name] / "golden.json").read_text())["rows"]


@pytest.fixture(scope="module", params=MODELS)
def served(request):
    with SkeinServer(MODELS[request.param], *EXACT) as server:
        yield server, request.param


def margin_of(question):
    """How far a value of an answer may be from the package's: 0, unless its fourth decimal hangs on a rounding.

    The package rounds the states that its head reads to bf16. The golden file tells how much the elements near an
    edge of that rounding change (`slack`).
    """
    change = STEEPEST * question["slack"]
    if all(abs(p * 1e4 % 1 - 0.5) > 1e4 * change + 0.02 for p in question["probabilities"]) and change < 1e-6:
        return 0
    # Of a score's mean, each of at most ten levels moves by its place.
    return 1.001e-4 + 10 * change * len(question["probabilities"])


def test_answers_are_those_of_sysone_serve(served):
    server, name = served
    exact = 0
    for row in rows_of(name):
        answer = answer_of(server, "/v1/systemone", row["body"])
        assert answer.pop("model") == name
        assert answer.pop("id")
        assert answer["usage"] == row["answer"]["usage"]
        assert answer["answers"].keys() == row["answer"]["answers"].keys()
        for key, expected in row["answer"]["answers"].items():
            margin = margin_of(row["questions"][key])
            exact += answer["answers"][key] == expected
            assert_equal_within(answer["answers"][key], expected, margin)
    assert exact >= 0.7 * sum(len(row["questions"]) for row in rows_of(name))


def test_probabilities_are_those_of_sysone(served):
    server, name = served
    asked = exact = 0
    for row in rows_of(name):
        body = as_decisions({key: value for key, value in row["body"].items() if key != "abstain"})
        if body is None:
            continue
        for answer in answer_of(server, "/v1/decisions", body)["answers"]:
            question = row["questions"][answer["name"]]
            bound = 1e-5 + STEEPEST * question["slack"]
            errors = [abs(p - q) for p, q in zip(probabilities(answer), question["probabilities"], strict=True)]
            assert max(errors) < bound
            exact += max(errors) < 1e-5
            asked += 1
    assert asked >= 3 and exact > 0.7 * asked


@pytest.mark.parametrize("name", MODELS)
def test_bf16_is_near(name):
    with SkeinServer(MODELS[name], "--dtype", "bf16") as server:
        row = rows_of(name)[0]
        answers = answer_of(server, "/v1/systemone", row["body"])["answers"]
        for key, answer in row["answer"]["answers"].items():
            assert abs(answers[key]["answer_confidence"] - answer["answer_confidence"]) < 0.15


@pytest.mark.parametrize("name", ["modernbert-parallel", "qwen3-parallel"])
def test_bits_are_the_same_alone_under_load_and_after_a_restart(name):
    bodies = [body for row in rows_of(name) if (body := as_decisions(row["body"])) is not None]
    with SkeinServer(MODELS[name], *EXACT) as server:
        alone = assert_same_alone_and_under_load(server, bodies, 2)
    with SkeinServer(MODELS[name], *EXACT, "--threads", "1") as other:
        assert [answer_of(other, "/v1/decisions", body)["answers"] for body in bodies] == alone


def run(*args, **options):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60, **options)


def test_model_info_tells_kind_limits_and_temperatures():
    path = MODELS["qwen3-parallel"]
    info = json.loads(run("model", "info", path, "--json", "-").stdout)
    assert info["decision_model"] == {
        "family": "sysone", "question_types": ["choice", "score", "noul"], "option_layout": "parallel",
        "max_len": 5600, "base": "qwen3", "base_dir": str(path / "base"), "max_state_tokens": 700,
        "max_option_tokens": 12, "temperature": [1.3, 0.8, 2.0],
        "temperature_by_options": {"choice:11+": 0.6, "choice:2": 4.5, "score:3-5": 1.7}}
    assert info["problems"] == [] and info["num_layers"] == 3 and info["has_tokenizer"]
    text = run("model", "info", path).stdout
    assert "sysone" in text and "700 tokens of a state" in text and "choice 1.3" in text


def test_decide_answers_a_file(tmp_path):
    name = "modernbert-parallel"
    row = rows_of(name)[0]
    (tmp_path / "questions.json").write_text(json.dumps({"questions": row["body"]["questions"]}))
    (tmp_path / "in.jsonl").write_text(json.dumps(row["body"]["state"]) + "\n")
    done = run("decide", MODELS[name], "--dtype", "f32", "--questions", tmp_path / "questions.json", "--input",
               tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[0])["answers"]
    for key, expected in row["answer"]["answers"].items():
        assert_equal_within(answers[key], expected, margin_of(row["questions"][key]))


def changed(tmp_path, name, **change):
    """A model directory whose config.json is changed; a name of two parts is a member of a member."""
    for path in MODELS[name].iterdir():
        if path.name != "config.json":
            (tmp_path / path.name).symlink_to(path)
    config = json.loads((MODELS[name] / "config.json").read_text())
    for key, value in change.items():
        *outer, last = key.split("__")
        target = config
        for part in outer:
            target = target[part]
        target[last] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.parametrize("change, words", [
    ({"architecture": "my.module:MyArchitecture"}, ["architecture", "modernbert", "gemma3_text"]),
    ({"params__head": "full"}, ["head", "compact"]),
    ({"params__layout": "diagonal"}, ["layout", "parallel"]),
    ({"params__head_layers": -1}, ["head_layers"]),
    ({"fitted__max_len": 0}, ["max_len"]),
    ({"fitted__num_layers": 99}, ["num_hidden_layers", "99"]),
    ({"fitted__hidden_size": 128}, ["hidden_size", "128"]),
    ({"fitted__head_dim": 64}, ["shape"]),
    ({"type_names": ["choice", "score"]}, ["type_names", "noul"]),
    ({"temperatures__choice": 0}, ["choice", "above 0"]),
    ({"prompt_format__question": "{topic}"}, ["question", "{topic}", "instructions"]),
    ({"prompt_format__noul_labels": ["No"]}, ["noul_labels"]),
    ({"architecture": "llama"}, ["model_type", "llama"]),
])
def test_other_models_are_refused_by_name(tmp_path, change, words):
    done = run("model", "info", changed(tmp_path, "modernbert-parallel", **change))
    said = done.stderr + done.stdout
    assert all(word in said for word in words), said


def test_a_base_that_is_not_there_is_told(tmp_path):
    folder = changed(tmp_path, "qwen3-parallel", base_model__name="org/base-of-mine")
    (folder / "base").unlink()
    done = run("model", "info", folder, env={"HOME": str(tmp_path)})
    assert done.returncode != 0
    assert "org/base-of-mine" in done.stderr and str(folder / "base") in done.stderr


def test_a_base_in_the_cache_is_found(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    changed(folder, "qwen3-parallel", base_model__name="org/base", base_model__revision="abc123")
    (folder / "base").unlink()
    cache = tmp_path / ".cache/huggingface/hub/models--org--base/snapshots"
    cache.mkdir(parents=True)
    (cache / "abc123").symlink_to(MODELS["qwen3-parallel"] / "base")
    done = run("model", "info", folder, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "abc123" in done.stdout


def test_questions_that_do_not_fit_the_step_are_told_which_option_helps():
    with SkeinServer(MODELS["modernbert-parallel"], "--dtype", "f32", "--max-num-batched-tokens", "256") as server:
        row = rows_of("modernbert-parallel")[5]
        answer = post(server, "/v1/systemone", row["body"])
        assert answer.status_code == 400
        assert answer.json()["error"]["param"].startswith("questions.")
        assert "--max-num-batched-tokens" in answer.json()["error"]["message"]


def test_temperature_and_diagnostics_on_request():
    with SkeinServer(MODELS["llama-sequential"], "--dtype", "f32") as server:
        body = {"state": "It rains.", "questions": {"q": {"type": "noul", "instructions": "Is it wet?"}}}
        plain = answer_of(server, "/v1/systemone", body)["answers"]["q"]
        assert "diagnostics" not in plain and math.isclose(sum(plain["probabilities"].values()), 1, abs_tol=2e-4)
        told = answer_of(server, "/v1/systemone", {**body, "diagnostics": True, "temperature": 50})["answers"]["q"]
        assert told["diagnostics"] == {"reading": "head", "temperature": 50.0}
        assert abs(told["noul"] - 0.5) < abs(plain["noul"] - 0.5)
