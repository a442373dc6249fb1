"""Kev models over HTTP, against the family's own code (tests/data/kev)."""
import io
import json
import shutil
import subprocess
import zipfile

import pytest

from decision_bodies import (answer_of, as_decisions, assert_equal_within,
                             assert_same_alone_and_under_load, post, probabilities)
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODELS = {path.name: path for path in sorted((ROOT / "tests/data/kev").iterdir()) if path.is_dir()}
EXACT = ["--dtype", "f32"]
# Probabilities are those of float32 logits over a temperature of 0.7 at least: a logit that is 1e-5 off moves one by less
# than 1e-5 / (4 * 0.7). The family rounds to two decimals.
BOUND = 1e-5


def rows_of(name):
    return json.loads((MODELS[name] / "golden.json").read_text())["rows"]


@pytest.fixture(scope="module", params=MODELS)
def served(request):
    with SkeinServer(MODELS[request.param], *EXACT) as server:
        yield server, request.param


def test_answers_are_those_of_the_family(served):
    server, name = served
    for row in rows_of(name):
        answer = answer_of(server, "/v1/systemone", row["body"])
        assert answer.pop("model") == name
        assert answer["usage"]["input_tokens"] == row["answer"]["usage"]["input_tokens"]
        assert answer["answers"].keys() == row["answer"]["answers"].keys()
        for key, expected in row["answer"]["answers"].items():
            exact = row["questions"][key]["probabilities"]
            near_edge = any(abs(p * 100 % 1 - 0.5) < 100 * BOUND for p in exact)
            # A score's mean and the confidences are sums of probabilities: their edges are not told.
            assert_equal_within(answer["answers"][key], expected, 0.0101 if near_edge or expected["type"] != "noul" else 0)
            assert list(answer["answers"][key]) == list(expected)


def test_probabilities_are_those_of_the_family(served):
    server, name = served
    asked = 0
    for row in rows_of(name):
        if not all(isinstance(question["instructions"], str) for question in row["body"]["questions"].values()):
            continue
        body = as_decisions(row["body"])
        if body is None:
            continue
        for answer in answer_of(server, "/v1/decisions", body)["answers"]:
            expected = row["questions"][answer["name"]]["probabilities"]
            assert max(abs(p - q) for p, q in zip(probabilities(answer), expected, strict=True)) < BOUND
            asked += 1
    assert asked >= 3


@pytest.mark.parametrize("name", MODELS)
def test_bf16_is_near(name):
    with SkeinServer(MODELS[name], "--dtype", "bf16") as server:
        row = rows_of(name)[0]
        answers = answer_of(server, "/v1/systemone", row["body"])["answers"]
        assert abs(answers["angry"]["noul"] - row["answer"]["answers"]["angry"]["noul"]) < 0.15


def bodies_of(name):
    """Requests in the form of /v1/decisions, and questions about one state that share it."""
    bodies = [body for row in rows_of(name) if (body := as_decisions(row["body"])) is not None]
    return [body for body in bodies if all(isinstance(q["instructions"], str) for q in body["questions"])]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [[], ["--max-num-batched-tokens", "1024"], ["--retention", "none"], ["--no-enable-prefix-caching"]])
def test_bits_are_the_same_alone_under_load_and_after_a_restart(name, options):
    bodies = [body for body in bodies_of(name) if sum(len(q.get("choices", [])) for q in body["questions"]) < 200]
    with SkeinServer(MODELS[name], *EXACT) as server:
        alone = assert_same_alone_and_under_load(server, bodies, 2)
    with SkeinServer(MODELS[name], *EXACT, "--threads", "1", *options) as other:
        assert assert_same_alone_and_under_load(other, bodies, 1) == alone


def test_questions_share_the_state():
    name = "qwen3.5-adapter"
    state = "It rained all night over the river town and the long way home. " * 40
    question = {"type": "choice", "instructions": "Where?", "choices": [{"value": "here"}, {"value": "there"}]}
    body = {"input": state, "questions": [{**question, "instructions": f"Where is number {i}?"} for i in range(8)]}
    with SkeinServer(MODELS[name], *EXACT) as server:
        usage = answer_of(server, "/v1/decisions", body)["usage"]
        state_tokens = answer_of(server, "/v1/decisions", {**body, "questions": [question]})["usage"]["input_tokens"]
        assert usage["input_tokens"] < 2 * state_tokens
        again = answer_of(server, "/v1/decisions", body)["usage"]
        assert again["input_tokens_details"]["cached_tokens"] > 0.8 * state_tokens


def run(*args, **options):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60, **options)


def test_model_info_tells_kind_limits_and_temperatures():
    path = MODELS["qwen3.5-adapter"]
    info = json.loads(run("model", "info", path, "--json", "-").stdout)
    assert info["architecture"] == "Kev" and info["problems"] == [] and info["has_tokenizer"]
    assert info["decision_model"] == {
        "family": "kev", "question_types": ["choice", "score", "noul"], "option_layout": "sequential", "max_len": 8192,
        "base": "Qwen3_5ForCausalLM", "base_dir": str(path / "base"), "max_option_tokens_of_question": 2048,
        "temperature": [1.4, 1.4, 1.4], "temperature_by_options": {}}
    text = run("model", "info", path).stdout
    assert "pointer head, 96 wide" in text and "choice 1.4" in text


def test_decide_answers_a_file(tmp_path):
    row = rows_of("qwen3-adapter")[0]
    (tmp_path / "questions.json").write_text(json.dumps({"questions": row["body"]["questions"]}))
    (tmp_path / "in.jsonl").write_text(json.dumps(row["body"]["state"]) + "\n")
    done = run("decide", MODELS["qwen3-adapter"], "--dtype", "f32", "--questions", tmp_path / "questions.json", "--input",
               tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[0])["answers"]
    for key, expected in row["answer"]["answers"].items():
        assert_equal_within(answers[key], expected, 0.0101)



def changed(tmp_path, name, edit):
    """A copy of a model directory whose head.pt has another pickle."""
    for path in MODELS[name].iterdir():
        if path.name != "head.pt":
            (tmp_path / path.name).symlink_to(path)
    source = zipfile.ZipFile(MODELS[name] / "head.pt")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for entry in source.namelist():
            data = source.read(entry)
            target.writestr(entry, edit(data) if entry.endswith("data.pkl") else data)
    (tmp_path / "head.pt").write_bytes(out.getvalue())
    return tmp_path


def refusal(path):
    done = run("model", "info", path)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.parametrize("old, new, words", [
    (b"collections\nOrderedDict", b"posix\nsystem", ["posix system", "plain data"]),
    (b"torch._utils\n_rebuild_tensor_v2", b"builtins\neval", ["builtins eval"]),
    (b"head_dim", b"head_Dim", ["shape", "256"]),
    (b"temperature", b"Temperature", []),
])
def test_a_pickle_with_other_contents_is_refused_by_name(tmp_path, old, new, words):
    path = changed(tmp_path, "qwen3-adapter", lambda data: data.replace(old, new))
    if not words:  # the temperature is then 1, as this model's is
        assert run("model", "info", path).returncode == 0
        return
    text = run("model", "info", path)
    told = text.stderr + text.stdout
    assert all(word in told for word in words), told


def test_a_missing_base_is_named(tmp_path):
    for path in MODELS["qwen3-adapter"].iterdir():
        if path.name != "base":
            (tmp_path / path.name).symlink_to(path)
    assert "base model 'base' is not here" in refusal(tmp_path)


def test_a_cut_head_is_refused(tmp_path):
    shutil.copytree(MODELS["qwen3-adapter"], tmp_path / "model")
    path = tmp_path / "model/head.pt"
    data = path.read_bytes()
    for size in (0, 1, 21, 22, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        assert "head.pt" in refusal(tmp_path / "model")


def test_fields_of_language_models_are_refused():
    row = rows_of("qwen3-adapter")[0]
    with SkeinServer(MODELS["qwen3-adapter"], *EXACT) as server:
        for field in ({"instructions": "Be strict."}, {"reading": "letters"}, {"prompt": "chat"}):
            answer = post(server, "/v1/systemone", {**row["body"], **field})
            assert answer.status_code == 400 and next(iter(field)) in answer.text
