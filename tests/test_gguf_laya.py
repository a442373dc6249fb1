"""GGUF files of Laya: the answers and the bits are those of the directories they are made of."""
import json
import shutil
import subprocess

import gguf
import numpy
import pytest

from decision_bodies import answer_of, as_decisions, assert_same_alone_and_under_load, post
from laya_gguf import in_file, template, with_mmbert_tokens, write_laya
from safetensors_file import read_safetensors, widened, write_safetensors
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "tests/data/laya"
ROWS = json.loads((MODEL / "golden.json").read_text())["rows"]
MAX_LEN = json.loads((MODEL / "rl_agent_config.json").read_text())["max_len"]
EXACT = ["--dtype", "f32", "--max-num-batched-tokens", "2048"]
SYSTEM_ONE = [{"max_len": MAX_LEN, **row["body"]} for row in ROWS]
DECISIONS = [body for one in SYSTEM_ONE if (body := as_decisions(one)) is not None]


def skein(*args):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60)


def refusal(file):
    done = skein("serve", file, "--port", "0")
    assert done.returncode != 0
    return done.stderr


def without_actions(answer):
    """A file lacks the scorer of the actions; all else of an answer is that of the directory."""
    answer.pop("model")
    actions = [one.pop("action", None) for one in answer["answers"].values()]
    return answer, actions


def test_answers_are_those_of_the_directory(tmp_path):
    file = write_laya(MODEL, tmp_path / "laya.gguf")
    with SkeinServer(file, *EXACT) as server, SkeinServer(MODEL, *EXACT) as directory:
        for body in SYSTEM_ONE:
            found, actions = without_actions(answer_of(server, "/v1/systemone", body))
            expected, of_directory = without_actions(answer_of(directory, "/v1/systemone", body))
            assert found == expected
            assert actions == [None] * len(actions) and None not in of_directory
        assert len(DECISIONS) >= 5
        for body in DECISIONS:
            assert answer_of(server, "/v1/decisions", body)["answers"] == answer_of(directory, "/v1/decisions", body)["answers"]


def test_mmbert_answers_as_its_directory(tmp_path):
    folder = with_mmbert_tokens(MODEL, tmp_path / "mmbert")
    file = write_laya(folder, tmp_path / "laya.gguf")
    with SkeinServer(file, *EXACT) as server, SkeinServer(folder, *EXACT) as directory:
        for body in SYSTEM_ONE:
            found, _ = without_actions(answer_of(server, "/v1/systemone", body))
            expected, _ = without_actions(answer_of(directory, "/v1/systemone", body))
            assert found == expected
        for body in DECISIONS:
            assert answer_of(server, "/v1/decisions", body)["answers"] == answer_of(directory, "/v1/decisions", body)["answers"]


def test_a_state_is_read_whole_unless_the_request_limits_it(tmp_path):
    """A file does not state max_len; as in llama.cpp, a question with its state fills the encoder's context."""
    file = write_laya(MODEL, tmp_path / "laya.gguf")
    body = {"state": "rain " * 400, "questions": {"wet": {"type": "noul", "instructions": "Is it wet?"}}}
    with SkeinServer(file, *EXACT) as server, SkeinServer(MODEL, *EXACT) as directory:
        whole = answer_of(server, "/v1/systemone", body)
        assert whole["usage"]["state_tokens_dropped"] == 0 < answer_of(directory, "/v1/systemone", body)["usage"]["state_tokens_dropped"]
        assert without_actions(whole) != without_actions(answer_of(server, "/v1/systemone", {**body, "max_len": MAX_LEN}))


def test_bits_are_the_same_alone_under_load_and_after_a_restart(tmp_path):
    file = write_laya(MODEL, tmp_path / "laya.gguf", "q8_0")
    with SkeinServer(file, *EXACT) as server:
        alone = assert_same_alone_and_under_load(server, DECISIONS, 2)
    with SkeinServer(file, *EXACT, "--threads", "1") as other:
        assert [answer_of(other, "/v1/decisions", body)["answers"] for body in DECISIONS] == alone


def test_quantized_matrices_are_those_that_the_package_reads(tmp_path):
    """A directory with the file's own numbers gives the same bits."""
    file = write_laya(MODEL, tmp_path / "laya.gguf", "q8_0")
    weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(file).tensors}
    folder = tmp_path / "directory"
    shutil.copytree(MODEL, folder)
    layers = json.loads((MODEL / "encoder/config.json").read_text())["num_hidden_layers"]
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    write_safetensors(folder / "model.safetensors",
                      {name: weights[in_file(name, layers)].reshape(values.shape) if in_file(name, layers) else values
                       for name, values in tensors.items()})

    def answers(model, *options):
        with SkeinServer(model, *EXACT, *options) as server:
            return [answer_of(server, "/v1/decisions", body)["answers"] for body in DECISIONS]

    widened_file = answers(file, "--quantization", "none")
    assert widened_file == answers(folder)
    assert widened_file != answers(MODEL)
    assert widened_file != answers(file), "its matrices stay packed"


def test_a_matrix_of_one_row_may_be_a_vector(tmp_path):
    """As llama.cpp's quantizer writes it."""
    def flat(tensors):
        assert tensors["cls.output.weight"].shape[0] == 1
        tensors["cls.output.weight"] = tensors["cls.output.weight"][0]

    plain, other = write_laya(MODEL, tmp_path / "plain.gguf"), write_laya(MODEL, tmp_path / "flat.gguf", change=flat)
    with SkeinServer(plain, *EXACT) as server, SkeinServer(other, *EXACT) as beside:
        one, two = (without_actions(answer_of(each, "/v1/systemone", SYSTEM_ONE[0])) for each in (server, beside))
    assert one == two


def test_info_decide_and_other_routes(tmp_path):
    file = write_laya(MODEL, tmp_path / "laya.gguf")
    info = json.loads(skein("model", "info", file, "--json", "-").stdout)
    assert info["architecture"] == "Laya" and info["problems"] == []
    assert info["decision_model"] == {
        "family": "laya", "question_types": ["choice", "score", "noul"], "option_layout": "sequential",
        "max_len": 2048, "head_max_len": 96, "temperature": [1.3, 0.8, 2.0],
        "temperature_by_options": {"choice:11+": 0.5, "choice:2": 5.0, "score:3-5": 1.7}}
    assert "no actions" in skein("model", "info", file).stdout
    row = ROWS[0]
    (tmp_path / "questions.json").write_text(json.dumps({"questions": row["body"]["questions"]}))
    (tmp_path / "in.jsonl").write_text(json.dumps(row["body"]["state"]) + "\n")
    done = skein("decide", file, "--dtype", "f32", "--questions", tmp_path / "questions.json", "--input", tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[0])["answers"]
    expected = {name: {key: value for key, value in answer.items() if key != "action"}
                for name, answer in row["answer"]["answers"].items()}
    assert found == expected
    with SkeinServer(file) as server:
        answer = post(server, "/v1/embeddings", {"model": "m", "input": "hi"})
        assert 400 <= answer.status_code < 500


def test_a_tensor_that_is_missing_or_of_another_shape_is_refused_by_its_name(tmp_path):
    layers = json.loads((MODEL / "encoder/config.json").read_text())["num_hidden_layers"]
    for number, name in enumerate(("token_embd.weight", "blk.1.ffn_down.weight", f"blk.{layers}.attn_qkv.weight",
                                   f"blk.{layers + 1}.ffn_up.bias", "token_types.weight", "cls.weight", "cls.output.bias",
                                   "cls.norm.bias")):
        missing = write_laya(MODEL, tmp_path / f"missing-{number}.gguf", change=lambda tensors: tensors.pop(name))
        assert f"'{name}'" in refusal(missing)
        if name == "token_embd.weight":
            continue  # its rows are the vocabulary

        def double(tensors):
            tensors[name] = numpy.concatenate([tensors[name], tensors[name]])

        other = write_laya(MODEL, tmp_path / f"shape-{number}.gguf", change=double)
        assert f"'{name}' has shape" in refusal(other)


@pytest.mark.parametrize("key, value, text", [
    ("tokenizer.chat_template.systemone", None, "is missing"),
    ("tokenizer.chat_template.systemone", "{{ state }}", "is not Laya's prompt"),
    ("modern-bert.decision.block_count", 9, "is 9; 1 to 4 are allowed"),
    ("modern-bert.decision.max_head_tokens", None, "is missing"),
    ("tokenizer.ggml.mask_token_id", None, "is missing"),
    ("modern-bert.feed_forward_length", None, "is missing"),
    ("modern-bert.feed_forward_length", [88, 80, 88, 256, 256], "is 88 and 80"),
    ("modern-bert.feed_forward_length", [88, 88], "has 2 elements, but there are 3 layers"),
])
def test_a_key_that_is_missing_or_wrong_is_refused_by_its_name(tmp_path, key, value, text):
    def edit(writer):
        for data in writer.kv_data:
            found = data.pop(key, None)
            if found is None or value is None:
                continue
            kind = gguf.GGUFValueType.ARRAY if isinstance(value, list) else found.type
            data[key] = gguf.gguf_writer.GGUFValue(value, kind, gguf.GGUFValueType.UINT32 if isinstance(value, list) else None)

    message = refusal(write_laya(MODEL, tmp_path / "laya.gguf", edit=edit))
    assert f"'{key}' {text}" in message


def test_other_prompts_and_conversion_are_refused(tmp_path):
    tokens = json.loads((MODEL / "tokenizer/tokenizer_config.json").read_text())
    assert "[MASK] {% if type == 'choice' %}" in template(tokens)
    done = skein("model", "convert", write_laya(MODEL, tmp_path / "laya.gguf"), tmp_path / "out")
    assert done.returncode == 1 and "is a decision model" in done.stderr
