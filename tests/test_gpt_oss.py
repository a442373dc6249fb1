"""gpt-oss's files: the experts of a layer in one tensor, plain or in MXFP4, and GGUF files of the same blocks."""
import json
import re
import shutil
import subprocess

import gguf
import numpy
import pytest

from qwen35_gguf import add_sizes, add_vocabulary
from safetensors_file import ARRAYS, TYPES, bf16, read_raw, read_safetensors, write_raw
from skein_server import SKEIN_BIN
from test_gguf import NAMES, finish
from test_quantized_files import log_probabilities

EXPERT = re.compile(r"(.*\.experts\.)(\d+)\.(gate_proj|up_proj|down_proj)\.(weight|bias)")
MXFP4 = numpy.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6], dtype=numpy.float32)
SHORT = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}


def write(path, tensors):
    """tensors: name -> array; bytes are U8."""
    types = TYPES | {numpy.dtype(numpy.uint8): "U8"}
    write_raw(path, {name: (types[array.dtype], array.shape, numpy.ascontiguousarray(array).tobytes())
                     for name, array in tensors.items()})


def alternating(gate, up):
    """[experts, rows, ...] of gate and of up, as gpt-oss has them: row by row in turn."""
    return numpy.stack([gate, up], axis=2).reshape(gate.shape[0], 2 * gate.shape[1], *gate.shape[2:])


def of_all(tensors):
    """(the tensors of experts, by the layer's "...experts.", matrix and kind: [experts, ...]; the other tensors)."""
    experts, others = {}, {}
    for name, array in tensors.items():
        found = EXPERT.fullmatch(name)
        if found:
            experts.setdefault(found.group(1), {}).setdefault((found.group(3), found.group(4)), {})[int(found.group(2))] = array
        else:
            others[name] = array
    return {at: {key: numpy.stack([part[i] for i in range(len(part))]) for key, part in parts.items()}
            for at, parts in experts.items()}, others


def fused(experts):
    """The tensors of plain files."""
    tensors = {}
    for at, part in experts.items():
        gate_up = alternating(part["gate_proj", "weight"], part["up_proj", "weight"])
        tensors[at + "gate_up_proj"] = gate_up.transpose(0, 2, 1)
        tensors[at + "gate_up_proj_bias"] = alternating(part["gate_proj", "bias"], part["up_proj", "bias"])
        tensors[at + "down_proj"] = part["down_proj", "weight"].transpose(0, 2, 1)
        tensors[at + "down_proj_bias"] = part["down_proj", "bias"]
    return tensors


def random_codes(random, shape):
    """(codes [..., k], scales [..., k / 32], numbers [..., k])."""
    codes = random.integers(0, 16, shape, dtype=numpy.uint8)
    scales = random.integers(120, 124, (*shape[:-1], shape[-1] // 32), dtype=numpy.uint8)
    return codes, scales, MXFP4[codes] * numpy.repeat(numpy.exp2(scales.astype(numpy.float32) - 127), 32, axis=-1)


def in_pairs(codes, scales):
    """(blocks [..., k / 32, 16], scales): two adjacent numbers in a byte."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 16, 2)
    return pairs[..., 0] | pairs[..., 1] << 4, scales


def in_gguf(codes, scales):
    """Rows of blocks [..., 17 k / 32]: the scale, then numbers i and 16 + i in a byte."""
    blocks = codes.reshape(*codes.shape[:-1], -1, 32)
    nibbles = blocks[..., :16] | blocks[..., 16:] << 4
    return numpy.concatenate([scales[..., None], nibbles], axis=-1).reshape(*codes.shape[:-1], -1)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A random model whose experts have tensors of their own."""
    model = tmp_path_factory.mktemp("models") / "base"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny-gpt-oss", "--dtype", "f32", model], check=True, capture_output=True)
    return model


def directory(base, path, tensors, **members):
    shutil.copytree(base, path)
    write(path / "model.safetensors", tensors)
    config = json.loads((base / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | members))
    return path


@pytest.fixture(scope="module")
def files(base, tmp_path_factory):
    """The same numbers in a plain directory, in one with MXFP4, and in a GGUF file with the same blocks."""
    folder = tmp_path_factory.mktemp("mxfp4")
    random = numpy.random.default_rng(5)
    experts, others = of_all(read_safetensors(base / "model.safetensors"))
    packed, blocks = {}, {}
    for at, part in experts.items():
        codes = {}
        for matrix in SHORT:
            made = random_codes(random, part[matrix, "weight"].shape)
            codes[matrix], part[matrix, "weight"] = made[:2], made[2]
            blocks[at, matrix] = in_gguf(*made[:2])
        gate_up = (alternating(codes["gate_proj"][i], codes["up_proj"][i]) for i in range(2))
        for name, two in (("gate_up_proj", gate_up), ("down_proj", codes["down_proj"])):
            packed[f"{at}{name}_blocks"], packed[f"{at}{name}_scales"] = in_pairs(*two)
    plain = fused(experts)
    biases = {name: array for name, array in plain.items() if name.endswith("_bias")}
    quantization = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    return (directory(base, folder / "plain", others | plain),
            directory(base, folder / "packed", others | biases | packed, quantization_config=quantization),
            as_gguf(folder / "model.gguf", base, others, experts, blocks))


def as_gguf(path, base, others, experts, blocks):
    config = json.loads((base / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "gpt-oss")
    add_sizes(writer, config)
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(config["intermediate_size"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(config["rope_scaling"]["factor"])
    writer.add_rope_scaling_orig_ctx_len(config["rope_scaling"]["original_max_position_embeddings"])
    add_vocabulary(writer, base / "none", config["vocab_size"])
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = NAMES | {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp"}
    for name, array in others.items():
        if name.endswith(".sinks"):
            writer.add_tensor(f"blk.{name.split('.')[2]}.attn_sinks.weight", array)
            continue
        module, kind = name.rsplit(".", 1)
        if module not in whole:
            _, _, layer, part = module.split(".", 3)
            whole[module] = f"blk.{layer}.{parts[part]}"
        writer.add_tensor(f"{whole[module]}.{kind}", array)
    for at, part in experts.items():
        for matrix, short in SHORT.items():
            name = f"blk.{at.split('.')[2]}.ffn_{short}_exps"
            writer.add_tensor(name + ".weight", blocks[at, matrix], raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            writer.add_tensor(name + ".bias", part[matrix, "bias"])
    finish(writer)
    return path


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_one_tensor_of_all_experts_has_the_bits_of_one_for_each(base, tmp_path, dtype):
    experts, others = of_all(read_safetensors(base / "model.safetensors"))
    both = directory(base, tmp_path / "fused", others | fused(experts))
    assert log_probabilities(both, "--dtype", dtype)[0] == log_probabilities(base, "--dtype", dtype)[0]


def test_a_file_in_bf16_keeps_its_numbers(base, tmp_path):
    rounded = {name: bf16(array) for name, array in read_safetensors(base / "model.safetensors").items()}
    experts, others = of_all(rounded)
    apart = directory(base, tmp_path / "apart", rounded, torch_dtype="bfloat16")
    model = directory(base, tmp_path / "fused", others | fused(experts), torch_dtype="bfloat16")
    assert log_probabilities(model)[0] == log_probabilities(apart)[0]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_widened_mxfp4_has_the_bits_of_its_numbers(files, dtype):
    plain, packed, _ = files
    found, log = log_probabilities(packed, "--dtype", dtype, "--quantization", "none")
    assert found == log_probabilities(plain, "--dtype", dtype)[0]
    assert "are widened to" not in log


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_mxfp4_stays_packed_with_the_bits_of_a_gguf_file(files, dtype):
    plain, packed, of_gguf = files
    found, log = log_probabilities(packed, "--dtype", dtype)
    assert "are widened to" not in log
    assert found != log_probabilities(plain, "--dtype", dtype)[0]  # activations are rounded to int8
    assert found == log_probabilities(of_gguf, "--dtype", dtype)[0]


def change(tensors, name, make):
    found = next(key for key in tensors if key.endswith(name))
    array = tensors.pop(found)
    if make is not None:
        tensors[found] = make(array)


REFUSED = {
    "no scales": ("0.mlp.experts.down_proj_scales", None, "the model lacks the tensor model.layers.0.mlp.experts.down_proj_scales"),
    "short scales": ("2.mlp.experts.gate_up_proj_scales", lambda a: a[:, :, :1], "gate_up_proj_scales' has shape [8, 192, 1]"),
    "few experts": ("1.mlp.experts.down_proj_blocks", lambda a: a[:5], "down_proj_blocks' has 5 experts"),
    "another type": ("0.mlp.experts.gate_up_proj_blocks", lambda a: a.view(numpy.int8), "has dtype I8; MXFP4 is of type U8"),
    "no biases": ("3.mlp.experts.down_proj_bias", None, "model.layers.3.mlp.experts.0.down_proj.bias"),
    "short biases": ("3.mlp.experts.gate_up_proj_bias", lambda a: a[:, :100], "gate_up_proj_bias' has shape [8, 100]"),
    "no sinks": ("1.self_attn.sinks", None, "the model lacks the tensor model.layers.1.self_attn.sinks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_files_are_refused_by_name(files, tmp_path, name):
    suffix, make, words = REFUSED[name]
    arrays = ARRAYS | {"U8": numpy.uint8}
    tensors = {key: numpy.frombuffer(raw, arrays[kind]).reshape(shape)
               for key, (kind, shape, raw) in read_raw(files[1] / "model.safetensors").items()}
    change(tensors, suffix, make)
    model = tmp_path / "model"
    shutil.copytree(files[1], model)
    write(model / "model.safetensors", tensors)
    run = subprocess.run([SKEIN_BIN, "run", model, "--prompt", "x"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and words in run.stderr, run.stderr


@pytest.mark.parametrize("member, value, words", [
    ("swiglu_limit", 5.0, "'swiglu_limit' is 5.0"), ("hidden_act", "gelu", "'hidden_act' is 'gelu'"),
    ("rope_scaling", None, "'rope_scaling' is missing"), ("num_experts_per_tok", 9, "more than the 8 experts")])
def test_other_configs_are_refused_by_name(base, tmp_path, member, value, words):
    model = tmp_path / "model"
    shutil.copytree(base, model)
    config = json.loads((base / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {member: value}))
    run = subprocess.run([SKEIN_BIN, "model", "info", model], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and words in run.stderr, run.stderr
