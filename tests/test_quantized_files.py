"""Quantized checkpoints (GPTQ, AWQ, compressed-tensors, FP8): widened they have the bits of a plain model of the same
numbers, packed those of a GGUF file of the same blocks."""
import json
import shutil
import subprocess
import urllib.request

import gguf
import numpy
import pytest

from qwen35_gguf import add_sizes
from safetensors_file import read_safetensors, write_safetensors
from skein_server import SKEIN_BIN, SkeinServer
from test_gguf import NAMES, finish

GROUP = 32
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the column of each nibble of a word


def packed(values, bits, axis):
    """Integers as nibbles or bytes of int32 words along an axis, the first in the lowest bits."""
    values = numpy.moveaxis(values.astype(numpy.uint32), axis, -1)
    per_word = 32 // bits
    values = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % per_word)])
    words = values.reshape(*values.shape[:-1], -1, per_word)
    shifts = numpy.arange(per_word, dtype=numpy.uint32) * bits
    return numpy.moveaxis((words << shifts).sum(axis=-1, dtype=numpy.uint32).view(numpy.int32), -1, axis)


def grouped(random, n, k, bits, symmetric=False):
    """(q [n, k], zeros [n, groups], scales [n, groups]). Zeros times scales are numbers of f16."""
    groups = k // GROUP
    q = random.integers(0, 2 ** bits, (n, k))
    zeros = numpy.full((n, groups), 2 ** (bits - 1)) if symmetric else random.integers(1, 2 ** bits, (n, groups))
    return q, zeros, (random.integers(1, 16, (n, groups)) / 2 ** (7 + bits)).astype(numpy.float16)


class Scheme:
    """A matrix as a checkpoint stores it (name -> array), its numbers, and the same in GGUF's blocks, if there are any."""

    def __init__(self, name, tensors, wide, kind=None, blocks=None):
        self.tensors = {f"{name}.{part}": array for part, array in tensors.items()}
        self.wide, self.kind, self.blocks = wide, kind, blocks


def widened(q, zeros, scales, group_of):
    return ((q - zeros[:, group_of]).astype(numpy.float32) * scales.astype(numpy.float32)[:, group_of])


def in_blocks(q, zeros, scales, bits):
    """(type, rows [n, bytes]): Q8_0, or Q4_0 where all zeros are 8, else Q4_1."""
    n, k = q.shape
    blocks = q.reshape(n, k // GROUP, GROUP)
    d = scales.astype(numpy.float16)[..., None].view(numpy.uint8)
    if bits == 8:
        return "Q8_0", numpy.concatenate([d, (blocks - 128).astype(numpy.int8).view(numpy.uint8)], axis=-1).reshape(n, -1)
    nibbles = (blocks[..., :16] | blocks[..., 16:] << 4).astype(numpy.uint8)
    if (zeros == 8).all():
        return "Q4_0", numpy.concatenate([d, nibbles], axis=-1).reshape(n, -1)
    minimums = (-zeros * scales.astype(numpy.float64)).astype(numpy.float16)
    return "Q4_1", numpy.concatenate([d, minimums[..., None].view(numpy.uint8), nibbles], axis=-1).reshape(n, -1)


def gptq(random, name, n, k, bits=4, version=1, reordered=False, symmetric=False):
    q, zeros, scales = grouped(random, n, k, bits, symmetric)
    group_of = numpy.arange(k) // GROUP
    if reordered:
        group_of = random.permutation(group_of)
    tensors = {"qweight": packed(q.T, bits, 0), "qzeros": packed(zeros.T - (version == 1), bits, 1), "scales": scales.T}
    if version == 1:  # many files have it, in order or not
        tensors["g_idx"] = group_of.astype(numpy.int32)
    stays = not reordered and (bits == 4 or symmetric)
    return Scheme(name, tensors, widened(q, zeros, scales, group_of), *(in_blocks(q, zeros, scales, bits) if stays else ()))


def awq(random, name, n, k):
    q, zeros, scales = grouped(random, n, k, 4)

    def words(array):  # [rows, n] -> [rows, n / 8]
        return packed(array.reshape(array.shape[0], -1, 8)[..., AWQ_ORDER].reshape(array.shape), 4, 1)

    return Scheme(name, {"qweight": words(q.T), "qzeros": words(zeros.T), "scales": scales.T},
                  widened(q, zeros, scales, numpy.arange(k) // GROUP), *in_blocks(q, zeros, scales, 4))


def pack_quantized(random, name, n, k, symmetric, bits=4, halves=True):
    q, zeros, scales = grouped(random, n, k, bits, symmetric)
    if not halves:
        scales = scales.astype(numpy.float32) * numpy.float32(1.0001)
    tensors = {"weight_packed": packed(q, bits, 1), "weight_scale": scales, "weight_shape": numpy.array([n, k])}
    if not symmetric:
        tensors["weight_zero_point"] = packed(zeros, bits, 0)
    return Scheme(name, tensors, widened(q, zeros, scales, numpy.arange(k) // GROUP),
                  *(in_blocks(q, zeros, scales, bits) if halves else ()))


def int_quantized(random, name, n, k):
    q = random.integers(-128, 128, (n, k)).astype(numpy.int8)
    scales = (random.integers(1, 16, (n, 1)) / 2 ** 15).astype(numpy.float32)
    blocks = in_blocks(q.astype(numpy.int64) + 128, None, numpy.repeat(scales, k // GROUP, 1), 8)
    return Scheme(name, {"weight": q, "weight_scale": scales}, q.astype(numpy.float32) * scales, *blocks)


def float8(bits):
    sign, exponent, mantissa = numpy.where(bits & 0x80, -1.0, 1.0), bits >> 3 & 15, bits & 7
    return (sign * numpy.where(exponent == 0, mantissa * 2.0 ** -9, (1 + mantissa / 8) * 2.0 ** (exponent.astype(float) - 7))).astype(numpy.float32)


def fp8(random, name, n, k, scale):
    bits = random.integers(0, 256, (n, k)).astype(numpy.uint8)
    bits[bits & 0x7f == 0x7f] = 0  # no NaN
    if scale == "blocks":
        scales = (random.random((-(-n // 32), -(-k // 48))) * 1e-3).astype(numpy.float32)
        wide = numpy.repeat(numpy.repeat(scales, 32, 0)[:n], 48, 1)[:, :k]
        return Scheme(name, {"weight": bits, "weight_scale_inv": scales}, float8(bits) * wide)
    scales = {"tensor": numpy.array(3e-4, numpy.float32), "rows": (random.random((n, 1)) * 1e-3).astype(numpy.float32)}[scale]
    return Scheme(name, {"weight": bits, "weight_scale": scales}, float8(bits) * scales)


def compressed(format, bits, kind="int"):
    return {"quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, "strategy": "group", "group_size": GROUP}}}}


CASES = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}, lambda *a: gptq(*a)),
    "gptq, symmetric": ({"quant_method": "gptq", "bits": 4, "desc_act": False}, lambda *a: gptq(*a, symmetric=True)),
    "gptq, 8 bits, symmetric": ({"quant_method": "gptq", "bits": 8, "desc_act": False}, lambda *a: gptq(*a, bits=8, symmetric=True)),
    "gptq, 8 bits, reordered": ({"quant_method": "gptq", "bits": 8, "desc_act": True}, lambda *a: gptq(*a, bits=8, reordered=True)),
    "gptq_v2": ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}, lambda *a: gptq(*a, version=2)),
    "awq": ({"quant_method": "awq", "bits": 4, "version": "gemm", "zero_point": True}, awq),
    "pack-quantized": (compressed("pack-quantized", 4), lambda *a: pack_quantized(*a, symmetric=True)),
    "pack-quantized with zeros": (compressed("pack-quantized", 4), lambda *a: pack_quantized(*a, symmetric=False)),
    "pack-quantized, f32 scales": (compressed("pack-quantized", 4), lambda *a: pack_quantized(*a, symmetric=True, halves=False)),
    "pack-quantized, 8 bits": (compressed("pack-quantized", 8), lambda *a: pack_quantized(*a, symmetric=True, bits=8)),
    "int-quantized": (compressed("int-quantized", 8), int_quantized),
    "float-quantized, rows": (compressed("float-quantized", 8, "float"), lambda *a: fp8(*a, "rows")),
    "fp8, tensors": ({"quant_method": "fp8", "fmt": "e4m3"}, lambda *a: fp8(*a, "tensor")),
    "fp8, blocks": ({"quant_method": "fp8", "weight_block_size": [32, 48]}, lambda *a: fp8(*a, "blocks")),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    model = tmp_path_factory.mktemp("models") / "base"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny-mistral", "--dtype", "f32", model], check=True, capture_output=True)
    return model


def quantize(base, folder, quantization, scheme):
    """Two directories of the same numbers, and what the first stores (weight -> Scheme). Its first layer stays plain."""
    random = numpy.random.default_rng(11)
    directories = folder / "quantized", folder / "plain"
    for directory in directories:
        shutil.copytree(base, directory)
    stored, plain, schemes = {}, {}, {}
    for name, array in read_safetensors(base / "model.safetensors").items():
        if array.ndim == 2 and ".layers." in name and ".layers.0." not in name:
            made = schemes[name] = scheme(random, name.removesuffix(".weight"), *array.shape)
            plain[name] = made.wide
            stored |= made.tensors
        else:
            stored[name] = plain[name] = array
    write_safetensors(directories[0] / "model.safetensors", stored)
    write_safetensors(directories[1] / "model.safetensors", plain)
    config = json.loads((base / "config.json").read_text())
    (directories[0] / "config.json").write_text(json.dumps(config | {"quantization_config": quantization}))
    return *directories, schemes


def as_gguf(path, plain, schemes):
    """The plain directory as a GGUF file whose matrices are these blocks, else f32."""
    config = json.loads((plain / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    add_sizes(writer, config)
    writer.add_rope_freq_base(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["<", ">", "<>", *(f"<{i}>" for i in range(3, config["vocab_size"]))])
    writer.add_token_types([1] * config["vocab_size"])
    writer.add_token_merges(["< >"])
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    for weight, array in read_safetensors(plain / "model.safetensors").items():
        name = whole.get(weight)
        if not name:
            _, _, layer, part = weight.removesuffix(".weight").split(".", 3)
            name = f"blk.{layer}.{NAMES.get(part) or {'input_layernorm': 'attn_norm', 'post_attention_layernorm': 'ffn_norm'}[part]}.weight"
        scheme = schemes.get(weight)
        rows = scheme.blocks if scheme else array
        for part, heads in (("attn_q", "num_attention_heads"), ("attn_k", "num_key_value_heads")):
            if name.endswith(part + ".weight"):
                rows = rows.reshape(config[heads], 2, rows.shape[0] // config[heads] // 2, -1).swapaxes(1, 2).reshape(rows.shape)
        rows = numpy.ascontiguousarray(rows)
        if scheme:
            writer.add_tensor(name, rows, raw_dtype=gguf.GGMLQuantizationType[scheme.kind])
        else:
            writer.add_tensor(name, rows)
    finish(writer)
    return path


def log_probabilities(model, *args):
    """(of a prompt's tokens, what the server said)."""
    with SkeinServer(model, "--served-model-name", "m", *args) as server:
        body = json.dumps({"model": "m", "prompt": list(range(3, 40)), "max_tokens": 1, "temperature": 0, "prompt_logprobs": 3}).encode()
        request = urllib.request.Request(server.url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            found = json.load(response)["choices"][0]["prompt_logprobs"]
    return [{token: entry["logprob"] for token, entry in position.items()} for position in found[1:]], "".join(server.log)


@pytest.fixture(scope="module", name="of_base")
def answers_of_base(base):
    return {dtype: log_probabilities(base, "--dtype", dtype)[0] for dtype in ("f32", "bf16")}


@pytest.mark.parametrize("name", CASES)
def test_a_widened_checkpoint_has_the_bits_of_its_numbers(base, of_base, tmp_path, name):
    quantized, plain, _ = quantize(base, tmp_path, *CASES[name])
    for dtype in ("f32", "bf16"):
        found, log = log_probabilities(quantized, "--dtype", dtype, "--quantization", "none")
        assert found == log_probabilities(plain, "--dtype", dtype)[0]
        assert len(found) == 36 and found != of_base[dtype]
        assert "are widened to" not in log


WIDENED = {"gptq, 8 bits, reordered": "its columns are in the order of their importance (desc_act)",
           "pack-quantized, f32 scales": "is not a number of f16",
           "float-quantized, rows": "FP8 has no integers", "fp8, tensors": "FP8 has no integers", "fp8, blocks": "FP8 has no integers"}


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_stays_packed_where_blocks_hold_its_numbers(base, tmp_path, name):
    quantized, plain, schemes = quantize(base, tmp_path, *CASES[name])
    stays = all(scheme.kind for scheme in schemes.values())
    assert stays == (name not in WIDENED)
    found, log = log_probabilities(quantized, "--dtype", "bf16")
    wide, _ = log_probabilities(plain, "--dtype", "bf16")
    if stays:
        assert "are widened to" not in log
        assert found != wide  # activations are rounded to int8
        assert found == log_probabilities(as_gguf(tmp_path / "model.gguf", plain, schemes), "--dtype", "bf16")[0]
    else:
        assert found == wide
        assert "14 of 14 quantized matrices are widened to bf16: " in log and WIDENED[name] in log


REFUSED = {
    "bitsandbytes": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "gptq", "supported are gptq, awq, fp8"),
    "three bits": ({"quant_method": "gptq", "bits": 3}, "gptq", "'bits' is 3; supported are 4 and 8"),
    "another layout": ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "awq", "'version' is 'gemv'"),
    "marlin": ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "gptq", "'checkpoint_format' is 'marlin'"),
    "sparse": (compressed("marlin-24", 4), "pack-quantized", "'format' is 'marlin-24'"),
    "another method's tensors": ({"quant_method": "awq", "bits": 4}, "gptq", "qweight' has shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_by_name(base, tmp_path, name):
    quantization, like, words = REFUSED[name]
    quantized, _, _ = quantize(base, tmp_path, quantization, CASES[like][1])
    run = subprocess.run([SKEIN_BIN, "run", quantized, "--prompt", "x"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and words in run.stderr, run.stderr
