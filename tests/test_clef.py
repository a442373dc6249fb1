"""Clef models over HTTP, against the code of other servers that have them (tests/data/clef)."""
import json
import shutil
import subprocess

import pytest

from decision_bodies import answer_of, as_decisions, assert_equal_within, post, probabilities
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODELS = {path.name: path for path in sorted((ROOT / "tests/data/clef").iterdir()) if path.is_dir()}
EXACT = ["--dtype", "f32", "--max-num-batched-tokens", "16384"]
# Probabilities are those of float32 logits, whose error is some 1e-6.
BOUND = 1e-5


def rows_of(name):
    return json.loads((MODELS[name] / "golden.json").read_text())["rows"]


def exact_of(question):
    """The probabilities of a question by option."""
    return {name: option[3] for name, option in question["options"].items()}


@pytest.fixture(scope="module", params=MODELS)
def served(request):
    with SkeinServer(MODELS[request.param], *EXACT) as server:
        yield server, request.param


def test_answers_are_those_of_the_family(served):
    server, name = served
    for row in rows_of(name):
        answer = answer_of(server, "/v1/systemone", row["body"])
        assert answer.pop("model") == name
        assert answer["usage"] == row["answer"]["usage"]
        assert list(answer["answers"]) == list(row["answer"]["answers"])
        for key, expected in row["answer"]["answers"].items():
            # Four decimals: a probability near an edge, or the sum of a score, may fall to the other side.
            assert_equal_within(answer["answers"][key], expected, 1.01e-4)
            assert list(answer["answers"][key]) == list(expected)


def test_probabilities_are_those_of_the_family(served):
    server, name = served
    asked = 0
    for row in rows_of(name):
        questions = row["body"]["questions"]
        if not all(isinstance(q.get("instructions"), str) and q["instructions"] for q in questions.values()):
            continue
        if any("" in q["criteria"].values() for q in questions.values() if isinstance(q.get("criteria"), dict)):
            continue  # /v1/decisions takes an empty description for none
        body = as_decisions(row["body"])
        if body is None:
            continue
        for answer, (key, question) in zip(answer_of(server, "/v1/decisions", body)["answers"], questions.items(), strict=True):
            expected = exact_of(row["questions"][key])
            names = {"noul": ["false", "true"], "score": sorted(expected, key=int) if question["type"] == "score" else None,
                     "choice": list(question.get("criteria", []))}[question["type"]]
            worst = max(abs(p - expected[option]) for p, option in zip(probabilities(answer), names, strict=True))
            assert worst < BOUND
            asked += 1
    assert asked >= 3


@pytest.mark.parametrize("name", MODELS)
def test_bf16_is_near(name):
    with SkeinServer(MODELS[name], "--dtype", "bf16") as server:
        row = rows_of(name)[0]
        answers = answer_of(server, "/v1/systemone", row["body"])["answers"]
        assert abs(answers["angry"]["noul"] - row["answer"]["answers"]["angry"]["noul"]) < 0.1


def run(*args, **options):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60, **options)


def test_model_info_tells_kind_and_limits():
    info = json.loads(run("model", "info", MODELS["untied"], "--json", "-").stdout)
    assert info["architecture"] == "Clef" and info["problems"] == [] and info["has_tokenizer"]
    assert info["decision_model"] == {
        "family": "clef", "question_types": ["choice", "score", "noul"], "option_layout": "sequential", "max_len": 16384,
        "base": "Qwen3_5ForCausalLM", "temperature": [1.0, 1.0, 1.0], "temperature_by_options": {}}
    text = run("model", "info", MODELS["untied"]).stdout
    assert "a joint head, 48 wide, 2 + 2 layers, behind 4 layers" in text and "1024 options" in text
    assert "output matrix of its own" in text


def test_decide_answers_a_file(tmp_path):
    row = rows_of("tied")[0]
    (tmp_path / "questions.json").write_text(json.dumps({"questions": row["body"]["questions"]}))
    (tmp_path / "in.jsonl").write_text(json.dumps(row["body"]["state"]) + "\n")
    done = run("decide", MODELS["tied"], "--dtype", "f32", "--questions", tmp_path / "questions.json", "--input",
               tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[0])["answers"]
    for key, expected in row["answer"]["answers"].items():
        assert_equal_within(answers[key], expected, 1.01e-4)


def refusal(path):
    done = run("model", "info", path)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.parametrize("change, words", [
    ({"width": None}, ["width", "missing"]),
    ({"heads": 5}, ["'heads'", "5", "divide"]),
    ({"hidden_size": 32}, ["hidden_size", "32", "64"]),
    ({"layers": 0}, ["'layers'", "0"]),
])
def test_a_faulty_config_of_the_head_is_refused_by_name(tmp_path, change, words):
    model = tmp_path / "model"
    shutil.copytree(MODELS["tied"], model)
    config = json.loads((model / "joint_head_config.json").read_text()) | change
    (model / "joint_head_config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    told = refusal(model)
    assert all(word in told for word in words), told


def test_a_head_of_another_shape_or_cut_is_refused(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(MODELS["tied"], model)
    config = json.loads((model / "joint_head_config.json").read_text())
    (model / "joint_head_config.json").write_text(json.dumps(config | {"feedforward": 65}))
    done = run("model", "info", model)
    assert "evidence_layers.0.feedforward.0.weight" in done.stdout + done.stderr
    (model / "joint_head_config.json").write_text(json.dumps(config))
    head = model / "joint_head.safetensors"
    head.write_bytes(head.read_bytes()[:-1])
    done = run("model", "info", model)
    assert "joint_head.safetensors" in done.stdout + done.stderr
    head.unlink()
    done = run("model", "info", model)
    assert "joint_head.safetensors" in done.stdout + done.stderr


def test_fields_of_language_models_are_refused():
    row = rows_of("tied")[0]
    with SkeinServer(MODELS["tied"], *EXACT) as server:
        for field in ({"instructions": "Be strict."}, {"reading": "letters"}, {"images": [{"url": "data:image/png;base64,AA=="}]}):
            answer = post(server, "/v1/systemone", {**row["body"], **field})
            assert answer.status_code == 400 and next(iter(field)) in answer.text


def test_a_request_that_no_step_takes_is_refused():
    body = {"state": "rain " * 600, "questions": {"q": {"type": "noul", "instructions": "Is it dry?"}}}
    with SkeinServer(MODELS["tied"], "--dtype", "f32", "--max-num-batched-tokens", "256") as server:
        answer = post(server, "/v1/systemone", body)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "state"
        assert "--max-num-batched-tokens" in answer.text
    with SkeinServer(MODELS["tied"], "--dtype", "f32", "--max-model-len", "400") as server:
        assert answer_of(server, "/v1/systemone", body)["usage"]["input_tokens"] == 400  # the state is cut
