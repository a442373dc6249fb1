"""A Laya decision model over HTTP, against the package `laya` and its server (tests/data/laya)."""
import json
import subprocess

import httpx
import pytest

from decision_bodies import (answer_of, as_decisions, assert_equal_within,
                             assert_same_alone_and_under_load, post, probabilities)
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "tests/data/laya"
ROWS = json.loads((MODEL / "golden.json").read_text())["rows"]
# Some golden questions are longer than the model's own max_len.
EXACT = ["--dtype", "f32", "--max-num-batched-tokens", "2048"]


@pytest.fixture(scope="module")
def server():
    with SkeinServer(MODEL, *EXACT) as running:
        yield running


@pytest.mark.parametrize("row", ROWS, ids=lambda row: next(iter(row["questions"])))
def test_answers_are_those_of_laya_serve(server, row):
    answer = answer_of(server, "/v1/systemone", row["body"])
    assert answer.pop("model") == "laya"
    assert answer == row["answer"]


def test_options_side_by_side_are_read_as_by_laya():
    folder = MODEL.parent / "laya-parallel"
    rows = json.loads((folder / "golden.json").read_text())["rows"]
    assert len(rows) >= 4
    with SkeinServer(folder, *EXACT) as running:
        for row in rows:
            answer = answer_of(running, "/v1/systemone", row["body"])
            assert answer.pop("model") == "laya-parallel"
            # The fourth decimal of a value may hang on the order of a sum.
            assert_equal_within(answer, row["answer"], 1.01e-4)


def test_probabilities_are_those_of_laya(server):
    asked = 0
    for row in ROWS:
        body = as_decisions(row["body"])
        if body is None:
            continue
        for answer in answer_of(server, "/v1/decisions", body)["answers"]:
            expected = row["questions"][answer["name"]]["probabilities"]
            for p, q in zip(probabilities(answer), expected, strict=True):
                assert abs(p - q) < 1e-5
            asked += 1
    assert asked > 70


def test_bf16_is_near(tmp_path):
    with SkeinServer(MODEL, "--dtype", "bf16") as server:
        for row in ROWS[:2]:
            answers = answer_of(server, "/v1/systemone", row["body"])["answers"]
            for name, answer in row["answer"]["answers"].items():
                assert abs(answers[name]["answer_confidence"] - answer["answer_confidence"]) < 0.1


def test_bits_are_the_same_alone_under_load_and_after_a_restart(server):
    bodies = [body for row in ROWS if (body := as_decisions(row["body"])) is not None]
    alone = assert_same_alone_and_under_load(server, bodies, 3)
    with SkeinServer(MODEL, *EXACT, "--threads", "1") as other:
        assert [answer_of(other, "/v1/decisions", body)["answers"] for body in bodies] == alone


SIMPLE = {"state": "It rains.", "questions": {"q": {"type": "noul", "instructions": "Is it wet?"}}}


@pytest.mark.parametrize("change, param, word", [
    ({"instructions": "Be brief."}, "instructions", "decision model"),
    ({"examples": [{"state": "x", "answers": {"q": True}}]}, "examples", "decision model"),
    ({"reading": "words"}, "reading", "decision model"),
    ({"prompt": "chat"}, "prompt", "decision model"),
    ({"max_len": 4000}, "max_len", "2048"),
    ({"head_max_len": 0}, "head_max_len", "1"),
    ({"max_len": 16, "questions": {"q": {"type": "choice", "instructions": "Which?", "criteria": ["a", "b", "c"]}}},
     "questions.q", "max_len"),
    ({"questions": {"q": {"type": "choice", "instructions": "Which?", "criteria": ["a", "a"]}}},
     "questions.q.criteria[1]", "differs"),
    ({"questions": {"q": {**SIMPLE["questions"]["q"], "option_order": [1, 0]}}}, "questions.q.option_order",
     "not supported"),
])
def test_errors_name_the_field(server, change, param, word):
    answer = post(server, "/v1/systemone", {**SIMPLE, **change})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert word in error["message"]


def test_questions_have_the_models_context_unless_an_option_limits_the_step():
    with SkeinServer(MODEL, "--dtype", "f32") as server:
        assert answer_of(server, "/v1/systemone", {**SIMPLE, "max_len": 1000})
    with SkeinServer(MODEL, "--dtype", "f32", "--max-num-batched-tokens", "512") as server:
        answer = post(server, "/v1/systemone", {**SIMPLE, "max_len": 1000})
        assert answer.status_code == 400
        assert "--max-num-batched-tokens" in answer.json()["error"]["message"]
        assert answer_of(server, "/v1/systemone", {**SIMPLE, "max_len": 500})


def test_diagnostics_and_temperature_on_request(server):
    plain = answer_of(server, "/v1/systemone", SIMPLE)["answers"]["q"]
    assert "diagnostics" not in plain
    told = answer_of(server, "/v1/systemone", {**SIMPLE, "diagnostics": True, "temperature": 50})["answers"]["q"]
    assert told["diagnostics"] == {"reading": "head", "temperature": 50.0}
    assert abs(told["noul"] - 0.5) < abs(plain["noul"] - 0.5)


def test_other_routes_are_refused_by_name(server):
    for path, body in [("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
                       ("/v1/completions", {"prompt": "hi", "max_tokens": 2}),
                       ("/v1/embeddings", {"input": "hi"}), ("/classify", {"input": "hi"}),
                       ("/rerank", {"query": "a", "documents": ["b"]})]:
        answer = post(server, path, body)
        assert 400 <= answer.status_code < 500, (path, answer.text)
    card = httpx.get(server.url + "/v1/models").json()["data"][0]
    assert card["architecture"]["output_modalities"] == ["decisions"]


def run(*args, **options):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60, **options)


def test_model_info_tells_kind_limits_and_temperatures():
    info = json.loads(run("model", "info", MODEL, "--json", "-").stdout)
    assert info["decision_model"] == {
        "family": "laya", "question_types": ["choice", "score", "noul"], "option_layout": "sequential",
        "max_len": 256, "head_max_len": 96,
        "temperature": [1.3, 0.8, 2.0],
        "temperature_by_options": {"choice:11+": 0.5, "choice:2": 5.0, "score:3-5": 1.7}}
    assert info["problems"] == []
    text = run("model", "info", MODEL).stdout
    assert "Laya" in text and "choice 1.3" in text


def test_decide_answers_a_file(tmp_path):
    row = ROWS[0]
    (tmp_path / "questions.json").write_text(json.dumps({"questions": row["body"]["questions"]}))
    lines = "".join(json.dumps(line["body"]["state"]) + "\n" for line in ROWS[:2])
    (tmp_path / "in.jsonl").write_text(lines)
    done = run("decide", MODEL, "--dtype", "f32", "--questions", tmp_path / "questions.json", "--input",
               tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert first["answers"] == row["answer"]["answers"]


def broken(tmp_path, change):
    """A model directory whose rl_agent_config.json is changed."""
    for path in MODEL.iterdir():
        if path.name != "rl_agent_config.json":
            (tmp_path / path.name).symlink_to(path)
    config = json.loads((MODEL / "rl_agent_config.json").read_text())
    (tmp_path / "rl_agent_config.json").write_text(json.dumps({**config, **change}))
    return run("model", "info", tmp_path)


@pytest.mark.parametrize("change, word", [
    ({"option_layout": "diagonal"}, "option_layout"),
    ({"head_layers": 0}, "head_layers"),
    ({"temperature": [1.0]}, "temperature"),
    ({"act_costs": {}}, "act_head.2.weight"),
])
def test_other_models_are_refused_by_name(tmp_path, change, word):
    done = broken(tmp_path, change)
    assert word in done.stderr + done.stdout
