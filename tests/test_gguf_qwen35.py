"""GGUF files of Qwen3.5 and of Kev: the weights, the answers and the bits are those of the directories they are made of."""
import json
import subprocess

import gguf
import httpx
import numpy
import pytest

from decision_bodies import answer_of, as_decisions, assert_same_alone_and_under_load, probabilities
from qwen35_gguf import KEV_TEMPLATE, write_kev, write_qwen35
from safetensors_file import read_safetensors, widened
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "tests/data/models/qwen3.5"
KEV = ROOT / "tests/data/kev/qwen3.5-whole"
Type = gguf.GGMLQuantizationType


def skein(*args):
    return subprocess.run([SKEIN_BIN, *map(str, args)], capture_output=True, text=True, timeout=60)


def converted(file, out, *options):
    done = skein("model", "convert", file, out, "--dtype", "f32", *options)
    assert done.returncode == 0, done.stderr
    return out


def log_probabilities(model, *args, prompt):
    with SkeinServer(model, "--served-model-name", "m", *args) as server:
        body = {"model": "m", "prompt": prompt, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 5}
        found = httpx.post(server.url + "/v1/completions", json=body, timeout=60).json()["choices"][0]["prompt_logprobs"]
        return [{token: entry["logprob"] for token, entry in position.items()} for position in found[1:]]


@pytest.mark.parametrize("further_layers", [0, 1])
def test_weights_are_those_of_the_directory(tmp_path, further_layers):
    config = json.loads((MODEL / "config.json").read_text())
    assert config["linear_num_value_heads"] > config["linear_num_key_heads"] > 1, "heads of v have an order of their own in files"
    file = write_qwen35(MODEL, tmp_path / "model.gguf", further_layers=further_layers)
    out = converted(file, tmp_path / "out")
    found, expected = read_safetensors(out / "model.safetensors"), read_safetensors(MODEL / "model.safetensors")
    assert {name for name in expected if not name.startswith("mtp.")} == found.keys()
    for name, values in found.items():
        one = widened(expected[name])
        if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            one = one + numpy.float32(1) - numpy.float32(1)
        if name.endswith("A_log"):  # through exp and log
            assert numpy.allclose(values, one, rtol=3e-7, atol=3e-7), name
        else:
            assert numpy.array_equal(values, one), name
    assert "tiled" not in (out / "config.json").read_text()


def test_answers_are_those_of_the_directory(tmp_path):
    """The heads of v keep the file's order: sums over them have another one."""
    file = write_qwen35(MODEL, tmp_path / "model.gguf")
    out = converted(file, tmp_path / "out")
    prompt = [(7 * i * i + 3 * i) % 120 for i in range(90)]
    expected = log_probabilities(out, "--dtype", "f32", prompt=prompt)
    found = log_probabilities(file, "--dtype", "f32", prompt=prompt)
    differences = [abs(value - other[token]) for one, other in zip(expected, found, strict=True) for token, value in one.items()
                   if token in other]
    assert len(differences) > 300 and max(differences) < 1e-4


def distance(logs, others):
    """The mean difference of log-probabilities, over the tokens that both name."""
    return numpy.mean([abs(value - other[token]) for one, other in zip(logs, others, strict=True) for token, value in one.items()
                       if token in other])


@pytest.mark.parametrize("kind", [Type.Q8_0, Type.Q4_0])
def test_a_file_of_few_bits_is_near_its_own_numbers(tmp_path, kind):
    """Products round activations to int8 for each block of 32: nearer than --quantization int8, which rounds whole rows."""
    file = write_qwen35(MODEL, tmp_path / "model.gguf", kind)
    out = converted(file, tmp_path / "out")
    prompt = [(7 * i * i + 3 * i) % 120 for i in range(60)]
    exact = log_probabilities(out, "--dtype", "f32", "--quantization", "none", prompt=prompt)
    packed = log_probabilities(file, "--dtype", "f32", prompt=prompt)
    rows = log_probabilities(out, "--dtype", "f32", "--quantization", "int8", prompt=prompt)
    assert 0 < distance(exact, packed) < distance(exact, rows)


def kev_bodies():
    rows = json.loads((KEV / "golden.json").read_text())["rows"]
    bodies = [(row, as_decisions(row["body"])) for row in rows]
    return [(row, body) for row, body in bodies if body and all(isinstance(q["instructions"], str) for q in body["questions"])]


def test_kev_answers_as_the_family(tmp_path):
    file = write_kev(KEV, tmp_path / "kev.gguf")
    asked = 0
    with SkeinServer(file, "--dtype", "f32") as server, SkeinServer(KEV, "--dtype", "f32") as directory:
        for row, body in kev_bodies():
            answer = answer_of(server, "/v1/decisions", body)
            assert answer["usage"]["input_tokens"] == answer_of(directory, "/v1/decisions", body)["usage"]["input_tokens"]
            for one in answer["answers"]:
                expected = row["questions"][one["name"]]["probabilities"]
                assert max(abs(p - q) for p, q in zip(probabilities(one), expected, strict=True)) < 2e-5
                asked += 1
        assert asked >= 3
        row = kev_bodies()[0][0]
        answer, other = (answer_of(one, "/v1/systemone", row["body"]) for one in (server, directory))
        assert answer["answers"].keys() == other["answers"].keys() and answer["model"] == "kev"


def test_kev_has_the_same_bits_under_load(tmp_path):
    file = write_kev(KEV, tmp_path / "kev.gguf", Type.Q8_0)
    bodies = [body for _, body in kev_bodies() if sum(len(q.get("choices", [])) for q in body["questions"]) < 200]
    with SkeinServer(file) as server:
        alone = assert_same_alone_and_under_load(server, bodies, 2)
    with SkeinServer(file, "--threads", "1", "--no-enable-prefix-caching") as server:
        assert assert_same_alone_and_under_load(server, bodies, 1) == alone


def test_kev_info_and_temperatures(tmp_path):
    file = write_kev(KEV, tmp_path / "kev.gguf", temperatures={"choice": 1.25, "noul": 0.5, "choice.3_5": 2.5})
    info = json.loads(skein("model", "info", file, "--json", "-").stdout)
    assert info["architecture"] == "Kev" and info["problems"] == []
    assert info["decision_model"]["temperature"] == [1.25, 1, 0.5]
    assert info["decision_model"]["temperature_by_options"] == {"choice:3-5": 2.5}


def test_what_is_not_known_is_refused_by_name(tmp_path):
    def refusal(file):
        done = skein("model", "info", file)
        assert done.returncode != 0
        return done.stderr

    other = write_kev(KEV, tmp_path / "other.gguf", template=KEV_TEMPLATE + " ")
    assert "'tokenizer.chat_template.systemone' is not Kev's prompt" in refusal(other)
    clef = write_qwen35(MODEL, tmp_path / "clef.gguf", change=lambda writer: writer.add_string("qwen35.decision.type", "clef"))
    assert "'qwen35.decision.type' is 'clef', a decision model" in refusal(clef)
    cold = write_kev(KEV, tmp_path / "cold.gguf", temperatures={"choice": 0.0})
    assert "temperature.choice' must be a number above 0" in refusal(cold)
    done = skein("model", "convert", write_kev(KEV, tmp_path / "kev.gguf"), tmp_path / "out")
    assert done.returncode == 1 and "is a decision model" in done.stderr
    done = skein("model", "convert", MODEL, tmp_path / "back.gguf")
    assert done.returncode == 1 and "Qwen3_5ForCausalLM" in done.stderr
