"""GGUF files of Qwen3's mixtures of experts, as llama.cpp's converter writes them: the bits are those of the directory, and
packed experts are near them."""
import json
import shutil
import subprocess

import gguf
import numpy
import pytest

from qwen35_gguf import add_sizes, add_vocabulary
from safetensors_file import read_safetensors, widened
from skein_server import ROOT, SKEIN_BIN
from test_gguf import finish
from test_gguf_export import add_tokenizer, export, refusal
from test_gguf_qwen35 import converted, distance, log_probabilities

Type = gguf.GGMLQuantizationType
PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp"}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
EXPERT = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps"}
PROMPT = [(7 * i * i + 3 * i) % 120 for i in range(90)]


@pytest.fixture
def folder(tmp_path):
    """A mixture whose experts have whole blocks of 32, with two experts for each token."""
    made = tmp_path / "moe"
    shutil.copytree(ROOT / "tests/data/models/qwen3-moe-plain", made)
    config = json.loads((made / "config.json").read_text())
    config |= {"norm_topk_prob": True, "num_experts_per_tok": 2}
    (made / "config.json").write_text(json.dumps(config))
    return made


def place(name):
    """The file's tensor with this weight, and the number of the expert whose part of it the weight is, if there are parts."""
    part = name.removesuffix(".weight")
    if part in WHOLE:
        return WHOLE[part] + ".weight", None
    _, _, layer, part = part.split(".", 3)
    if not part.startswith("mlp.experts."):
        return f"blk.{layer}.{PARTS[part]}.weight", None
    _, _, expert, part = part.split(".")
    return f"blk.{layer}.{EXPERT[part]}.weight", int(expert)


def in_file(tensors):
    """Names and values in the file: a tensor has one matrix of every expert of a layer."""
    experts = {}
    for name, values in tensors.items():
        tensor, expert = place(name)
        if expert is None:
            yield tensor, values
        else:
            experts.setdefault(tensor, {})[expert] = values
    for tensor, matrices_of in experts.items():
        yield tensor, numpy.stack([matrices_of[i] for i in range(len(matrices_of))])


def write_moe(folder, path, kind=Type.F32, **changed):
    config = json.loads((folder / "config.json").read_text())
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    writer = gguf.GGUFWriter(path, "qwen3moe")
    add_sizes(writer, config)
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    for key, value in changed.items():
        writer.add_uint32(f"qwen3moe.{key}", value)
    add_vocabulary(writer, folder, config["vocab_size"])
    for name, values in in_file(tensors):
        values = numpy.ascontiguousarray(values, dtype=numpy.float32)
        stays = values.ndim == 1 or "ffn_gate_inp" in name or kind == Type.F32
        if stays:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    finish(writer)
    return path


def matrices(file, tensors):
    """The numbers of the file by the directory's names, as the package gguf reads them."""
    found = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(file).tensors}
    read = {}
    for name, values in tensors.items():
        tensor, expert = place(name)
        read[name] = (found[tensor] if expert is None else found[tensor][expert]).reshape(values.shape)
    return read


@pytest.mark.parametrize("kind", [Type.F32, Type.Q8_0, Type.Q4_0])
def test_weights_and_bits_are_those_of_the_directory(folder, tmp_path, kind):
    file = write_moe(folder, tmp_path / "m.gguf", kind)
    out = converted(file, tmp_path / "out")
    found, expected = read_safetensors(out / "model.safetensors"), matrices(file, read_safetensors(folder / "model.safetensors"))
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert numpy.array_equal(values, expected[name]), name
    exact = log_probabilities(out, "--dtype", "f32", prompt=PROMPT)
    assert log_probabilities(file, "--dtype", "f32", "--quantization", "none", prompt=PROMPT) == exact
    packed = log_probabilities(file, "--dtype", "f32", prompt=PROMPT)
    if kind == Type.F32:
        assert packed == exact
    else:  # nearer than whole rows of int8
        rows = log_probabilities(out, "--dtype", "f32", "--quantization", "int8", prompt=PROMPT)
        assert 0 < distance(exact, packed) < distance(exact, rows)


@pytest.mark.parametrize("kind", [Type.F32, Type.Q8_0])
def test_a_written_file_is_the_converters(folder, tmp_path, kind):
    add_tokenizer(folder)
    dtype = kind.name.lower()
    written = export(folder, tmp_path / "written.gguf", "--dtype", dtype, "--embedding-dtype", dtype)
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(written).tensors}
    expected = {tensor.name: tensor for tensor in gguf.GGUFReader(write_moe(folder, tmp_path / "m.gguf", kind)).tensors}
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].tensor_type, list(found[name].shape)) == (tensor.tensor_type, list(tensor.shape)), name
        if tensor.tensor_type == Type.F32:
            assert numpy.array_equal(found[name].data, tensor.data), name
        else:  # of two ways to round, each is within half a step of the numbers
            read, other = (gguf.quants.dequantize(one.data, kind) for one in (found[name], tensor))
            assert numpy.abs(read - other).max() < 1.1 * numpy.abs(other).max() / 127, name
    back = read_safetensors(converted(written, tmp_path / "back") / "model.safetensors")
    assert all(numpy.array_equal(back[name], matrix) for name, matrix in matrices(written, back).items())


def test_layers_without_experts_are_not_written(tmp_path):
    mixed = tmp_path / "mixed"
    shutil.copytree(ROOT / "tests/data/models/qwen3-moe", mixed)
    add_tokenizer(mixed)
    assert "'mlp_only_layers or decoder_sparse_step' is one that a GGUF file of the architecture qwen3moe cannot say" in refusal(
        mixed, tmp_path / "m.gguf", "--dtype", "f32")


def test_what_a_config_cannot_say_is_refused_by_name(folder, tmp_path):
    def refused(file):
        done = subprocess.run([SKEIN_BIN, "model", "info", file], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        return done.stderr

    assert "expert_shared_count" in refused(write_moe(folder, tmp_path / "shared.gguf", expert_shared_count=1))


def test_more_layers_than_a_config_has_are_refused(folder, tmp_path):
    file = write_moe(folder, tmp_path / "further.gguf", nextn_predict_layers=1)
    done = subprocess.run([SKEIN_BIN, "model", "info", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "nextn_predict_layers" in done.stderr
