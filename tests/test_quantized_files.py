"""Quantized checkpoints (GPTQ, AWQ, compressed-tensors, FP8): each has the bits of a plain model of the same numbers."""
import json
import shutil
import struct
import subprocess
import urllib.request

import numpy
import pytest

from skein_server import SKEIN_BIN, SkeinServer

GROUP = 32
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the column of each nibble of a word


def read_tensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]],
                                   numpy.float32).reshape(entry["shape"]) for name, entry in header.items()}


def write_tensors(path, tensors):
    """tensors: name -> array; uint8 is FP8."""
    names = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8", "uint8": "F8_E4M3"}
    header, data = {}, b""
    for name, array in tensors.items():
        raw = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def packed(values, bits, axis):
    """Integers as nibbles or bytes of int32 words along an axis, the first in the lowest bits."""
    values = numpy.moveaxis(values.astype(numpy.uint32), axis, -1)
    per_word = 32 // bits
    values = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % per_word)])
    words = values.reshape(*values.shape[:-1], -1, per_word)
    shifts = numpy.arange(per_word, dtype=numpy.uint32) * bits
    return numpy.moveaxis((words << shifts).sum(axis=-1, dtype=numpy.uint32).view(numpy.int32), -1, axis)


def grouped(random, n, k, bits, symmetric=False):
    """(q [n, k], zeros [n, groups], scales [n, groups] in f16)."""
    groups = k // GROUP
    q = random.integers(0, 2 ** bits, (n, k))
    zeros = numpy.full((n, groups), 2 ** (bits - 1)) if symmetric else random.integers(1, 2 ** bits, (n, groups))
    return q, zeros, (random.random((n, groups)) * 0.01 + 0.001).astype(numpy.float16)


def widened(q, zeros, scales, group_of):
    return ((q - zeros[:, group_of]).astype(numpy.float32) * scales.astype(numpy.float32)[:, group_of])


def gptq(random, name, n, k, bits=4, version=1, reordered=False):
    q, zeros, scales = grouped(random, n, k, bits)
    group_of = numpy.arange(k) // GROUP
    if reordered:
        group_of = random.permutation(group_of)
    tensors = {"qweight": packed(q.T, bits, 0), "qzeros": packed(zeros.T - (version == 1), bits, 1), "scales": scales.T}
    if reordered:
        tensors["g_idx"] = group_of.astype(numpy.int32)
    return {f"{name}.{part}": array for part, array in tensors.items()}, widened(q, zeros, scales, group_of)


def awq(random, name, n, k):
    q, zeros, scales = grouped(random, n, k, 4)

    def words(array):  # [rows, n] -> [rows, n / 8]
        return packed(array.reshape(array.shape[0], -1, 8)[..., AWQ_ORDER].reshape(array.shape), 4, 1)

    return ({f"{name}.qweight": words(q.T), f"{name}.qzeros": words(zeros.T), f"{name}.scales": scales.T},
            widened(q, zeros, scales, numpy.arange(k) // GROUP))


def pack_quantized(random, name, n, k, symmetric, bits=4):
    q, zeros, scales = grouped(random, n, k, bits, symmetric)
    tensors = {"weight_packed": packed(q, bits, 1), "weight_scale": scales, "weight_shape": numpy.array([n, k])}
    if not symmetric:
        tensors["weight_zero_point"] = packed(zeros, bits, 0)
    return {f"{name}.{part}": array for part, array in tensors.items()}, widened(q, zeros, scales, numpy.arange(k) // GROUP)


def int_quantized(random, name, n, k):
    q = random.integers(-128, 128, (n, k)).astype(numpy.int8)
    scales = (random.random((n, 1)) * 0.001).astype(numpy.float32)
    return {f"{name}.weight": q, f"{name}.weight_scale": scales}, q.astype(numpy.float32) * scales


def float8(bits):
    sign, exponent, mantissa = numpy.where(bits & 0x80, -1.0, 1.0), bits >> 3 & 15, bits & 7
    return (sign * numpy.where(exponent == 0, mantissa * 2.0 ** -9, (1 + mantissa / 8) * 2.0 ** (exponent.astype(float) - 7))).astype(numpy.float32)


def fp8(random, name, n, k, scale):
    bits = random.integers(0, 256, (n, k)).astype(numpy.uint8)
    bits[bits & 0x7f == 0x7f] = 0  # no NaN
    if scale == "blocks":
        scales = (random.random((-(-n // 32), -(-k // 48))) * 1e-3).astype(numpy.float32)
        wide = numpy.repeat(numpy.repeat(scales, 32, 0)[:n], 48, 1)[:, :k]
        return {f"{name}.weight": bits, f"{name}.weight_scale_inv": scales}, float8(bits) * wide
    scales = {"tensor": numpy.array(3e-4, numpy.float32), "rows": (random.random((n, 1)) * 1e-3).astype(numpy.float32)}[scale]
    return {f"{name}.weight": bits, f"{name}.weight_scale": scales}, float8(bits) * scales


def compressed(format, bits, kind="int"):
    return {"quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, "strategy": "group", "group_size": GROUP}}}}


CASES = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}, lambda *a: gptq(*a)),
    "gptq, 8 bits, reordered": ({"quant_method": "gptq", "bits": 8, "desc_act": True}, lambda *a: gptq(*a, bits=8, reordered=True)),
    "gptq_v2": ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}, lambda *a: gptq(*a, version=2)),
    "awq": ({"quant_method": "awq", "bits": 4, "version": "gemm", "zero_point": True}, awq),
    "pack-quantized": (compressed("pack-quantized", 4), lambda *a: pack_quantized(*a, symmetric=True)),
    "pack-quantized with zeros": (compressed("pack-quantized", 4), lambda *a: pack_quantized(*a, symmetric=False)),
    "pack-quantized, 8 bits": (compressed("pack-quantized", 8), lambda *a: pack_quantized(*a, symmetric=True, bits=8)),
    "int-quantized": (compressed("int-quantized", 8), int_quantized),
    "float-quantized, rows": (compressed("float-quantized", 8, "float"), lambda *a: fp8(*a, "rows")),
    "fp8, tensors": ({"quant_method": "fp8", "fmt": "e4m3"}, lambda *a: fp8(*a, "tensor")),
    "fp8, blocks": ({"quant_method": "fp8", "weight_block_size": [32, 48]}, lambda *a: fp8(*a, "blocks")),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    model = tmp_path_factory.mktemp("models") / "base"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny-llama", "--dtype", "f32", model], check=True, capture_output=True)
    return model


def quantize(base, folder, quantization, scheme):
    """Two directories of the same numbers: (quantized, plain). The first layer of the quantized one stays plain, too."""
    random = numpy.random.default_rng(11)
    directories = folder / "quantized", folder / "plain"
    for directory in directories:
        shutil.copytree(base, directory)
    stored, plain = {}, {}
    for name, array in read_tensors(base / "model.safetensors").items():
        if array.ndim == 2 and ".layers." in name and ".layers.0." not in name:
            tensors, plain[name] = scheme(random, name.removesuffix(".weight"), *array.shape)
            stored |= tensors
        else:
            stored[name] = plain[name] = array
    write_tensors(directories[0] / "model.safetensors", stored)
    write_tensors(directories[1] / "model.safetensors", plain)
    config = json.loads((base / "config.json").read_text())
    (directories[0] / "config.json").write_text(json.dumps(config | {"quantization_config": quantization}))
    return directories


def log_probabilities(model, *args):
    with SkeinServer(model, "--served-model-name", "m", *args) as server:
        body = json.dumps({"model": "m", "prompt": list(range(3, 40)), "max_tokens": 1, "temperature": 0, "prompt_logprobs": 3}).encode()
        request = urllib.request.Request(server.url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["choices"][0]["prompt_logprobs"]


@pytest.mark.parametrize("name", CASES)
def test_a_quantized_checkpoint_has_the_bits_of_its_numbers(base, tmp_path, name):
    quantized, plain = quantize(base, tmp_path, *CASES[name])
    for dtype in ("f32", "bf16"):
        found = log_probabilities(quantized, "--dtype", dtype)
        assert found == log_probabilities(plain, "--dtype", dtype)
        assert len(found) == 37 and found != log_probabilities(base, "--dtype", dtype)


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
    quantized, _ = quantize(base, tmp_path, quantization, CASES[like][1])
    run = subprocess.run([SKEIN_BIN, "run", quantized, "--prompt", "x"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and words in run.stderr, run.stderr
