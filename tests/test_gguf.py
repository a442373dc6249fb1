"""GGUF files against the package gguf and the tokenizers' reference cases: every type of elements bit for bit, a merged
adapter, models in parts, tokenizers, and what a served file answers."""
import json
import struct
import subprocess
import urllib.request

import gguf
import numpy
import pytest

from safetensors_file import bf16, read_safetensors, write_safetensors
from skein_server import SKEIN_BIN, SkeinServer

Type = gguf.GGMLQuantizationType
TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.IQ4_NL, Type.MXFP4,
         Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_XS]
WIDTH, MLP, HEADS, KV_HEADS, LAYERS, TOKENS = 256, 512, 4, 2, len(TYPES), 300
HEAD = WIDTH // HEADS
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}
SHAPES = {"attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH // 2, WIDTH), "attn_v": (WIDTH // 2, WIDTH),
          "attn_output": (WIDTH, WIDTH), "ffn_gate": (MLP, WIDTH), "ffn_up": (MLP, WIDTH),
          "ffn_down": (WIDTH, MLP)}
# Zero, subnormals, the largest numbers, infinities and NaN as f16: scales that no quantizer writes.
EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00]


def random_blocks(random, shape, kind):
    """Blocks of any bytes for a matrix of this shape, some with extreme scales: [rows, row bytes]."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (shape[0] * shape[1] // elements, size), dtype=numpy.uint8)
    if kind == Type.MXFP4:  # its scale is one byte, of which any is allowed
        return blocks.reshape(shape[0], -1)
    scale = 208 if kind == Type.Q6_K else 0
    for block in blocks[::3]:
        block[scale:scale + 2] = numpy.frombuffer(struct.pack("<H", random.choice(EXTREME_HALVES)), numpy.uint8)
    return blocks.reshape(shape[0], -1)


def values(raw, kind):
    """What the package reads: f32."""
    if kind == Type.F32:
        return raw.view(numpy.float32)
    if kind == Type.F16:
        return raw.view(numpy.float16).astype(numpy.float32)
    with numpy.errstate(all="ignore"):
        return gguf.quants.dequantize(raw, kind)


def huggingface_rows(matrix, heads):
    """Rows of q or k: (head, j, half) of the file are (head, half, j) of the model."""
    rows = matrix.shape[0]
    return matrix.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(matrix.shape)


def same_bits(found, expected):
    """NaN equals NaN: which one comes out of arithmetic is the processor's choice."""
    is_nan = numpy.isnan(expected)
    assert numpy.array_equal(numpy.isnan(found), is_nan)
    assert numpy.array_equal(found.view(numpy.uint32)[~is_nan], expected.view(numpy.uint32)[~is_nan])


def llama_writer(path, **split):
    writer = gguf.GGUFWriter(path, "llama", **split)
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["a", "b", "ab", *(f"<{i}>" for i in range(3, TOKENS))])
    writer.add_token_types([1] * (TOKENS - 1) + [3])
    writer.add_token_merges(["a b"])
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A Llama whose layers have a type of elements each; (file, what the model's matrices must be)."""
    random = numpy.random.default_rng(7)
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    writer = llama_writer(path)
    expected = {}

    def add(name, weight, shape, kind, heads=0):
        raw = random_blocks(random, shape, kind)
        matrix = values(raw, kind)
        expected[weight] = huggingface_rows(matrix, heads) if heads else matrix
        if kind in (Type.F32, Type.F16):
            writer.add_tensor(name, raw.view(numpy.float32 if kind == Type.F32 else numpy.float16))
        else:
            writer.add_tensor(name, raw, raw_dtype=kind)

    add("token_embd.weight", "model.embed_tokens.weight", (TOKENS, WIDTH), Type.Q8_0)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for layer, kind in enumerate(TYPES):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(WIDTH, numpy.float32))
        for part, name in NAMES.items():
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name, 0)
            add(f"blk.{layer}.{name}.weight", f"model.layers.{layer}.{part}.weight", SHAPES[name], kind, heads)
    finish(writer)
    return path, expected


def convert(file, out, *args):
    subprocess.run([SKEIN_BIN, "model", "convert", file, out, *args], check=True, timeout=60)
    return read_safetensors(out / "model.safetensors")


def test_every_type_is_read_bit_for_bit(model, tmp_path):
    path, expected = model
    found = convert(path, tmp_path / "f32", "--dtype", "f32")
    for name, matrix in expected.items():
        same_bits(found[name], numpy.ascontiguousarray(matrix))
    rounded = convert(path, tmp_path / "bf16")
    for name, matrix in expected.items():
        is_nan = numpy.isnan(matrix)
        assert numpy.array_equal(rounded[name][~is_nan], bf16(matrix)[~is_nan]), name


@pytest.mark.parametrize("stabilized", [False, True])
def test_an_adapter_is_merged_before_rounding(model, tmp_path, stabilized):
    path, expected = model
    random = numpy.random.default_rng(8)
    rank, alpha = 4, 10
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "use_rslora": stabilized,
         "target_modules": ["q_proj", "down_proj"]}))
    scale = numpy.float32(alpha / (rank ** 0.5 if stabilized else rank))
    tensors, merged = {}, {}
    for layer in range(LAYERS):
        for part in ("self_attn.q_proj", "mlp.down_proj"):
            weight = f"model.layers.{layer}.{part}"
            matrix = expected[weight + ".weight"]
            a = random.standard_normal((rank, matrix.shape[1])).astype(numpy.float32)
            b = random.standard_normal((matrix.shape[0], rank)).astype(numpy.float32)
            tensors[f"base_model.model.{weight}.lora_A.weight"] = a
            tensors[f"base_model.model.{weight}.lora_B.weight"] = b
            change = numpy.zeros_like(matrix)
            for k in range(rank):
                change += b[:, k:k + 1] * a[k]
            with numpy.errstate(all="ignore"):
                merged[weight + ".weight"] = matrix + scale * change
    write_safetensors(adapter / "adapter_model.safetensors", tensors)
    found = convert(path, tmp_path / "f32", "--dtype", "f32", "--adapter", adapter)
    rounded = convert(path, tmp_path / "bf16", "--adapter", adapter)
    for name, matrix in (expected | merged).items():
        same_bits(found[name], numpy.ascontiguousarray(matrix))
        is_nan = numpy.isnan(matrix)
        assert numpy.array_equal(rounded[name][~is_nan], bf16(matrix)[~is_nan]), name


@pytest.fixture(scope="module")
def sane(tmp_path_factory):
    """A model of numbers that make sense, most of it in blocks: (one file, the first of its parts)."""
    folder = tmp_path_factory.mktemp("sane")
    kinds = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]

    def write(path, **split):
        random = numpy.random.default_rng(3)
        writer = llama_writer(path, **split)

        def add(name, shape, kind):
            matrix = (random.standard_normal(shape) / WIDTH ** 0.5).astype(numpy.float32)
            writer.add_tensor(name, gguf.quants.quantize(matrix, kind), raw_dtype=kind)

        add("token_embd.weight", (TOKENS, WIDTH), Type.Q8_0)
        writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
        for layer in range(LAYERS):
            for norm in ("attn_norm", "ffn_norm"):
                writer.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(WIDTH, numpy.float32))
            for i, (name, shape) in enumerate(SHAPES.items()):
                add(f"blk.{layer}.{name}.weight", shape, kinds[(layer + i) % len(kinds)])
        finish(writer)

    write(folder / "whole.gguf")
    write(folder / "parts.gguf", split_max_tensors=50)
    return folder / "whole.gguf", folder / "parts-00001-of-00003.gguf"


def test_parts_are_one_model(sane, tmp_path):
    whole, first = (convert(path, tmp_path / path.stem) for path in sane)
    assert whole.keys() == first.keys()
    assert all(numpy.array_equal(whole[name], first[name]) for name in whole)
    second = sane[1].parent / "parts-00002-of-00003.gguf"
    run = subprocess.run([SKEIN_BIN, "model", "info", second], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "split.no' is 1; it must be 0: name the first part" in run.stderr
    alone = tmp_path / "alone-00001-of-00003.gguf"
    alone.write_bytes(sane[1].read_bytes())
    run = subprocess.run([SKEIN_BIN, "model", "info", alone], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "alone-00002-of-00003.gguf" in run.stderr


def log_probabilities(model, *args):
    """Of 40 tokens' successors, by token."""
    with SkeinServer(model, "--served-model-name", "m", *args) as server:
        body = json.dumps({"model": "m", "prompt": list(range(40)), "max_tokens": 1, "temperature": 0,
                           "prompt_logprobs": 5}).encode()
        request = urllib.request.Request(server.url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            found = json.load(response)["choices"][0]["prompt_logprobs"]
        return [{token: entry["logprob"] for token, entry in position.items()} for position in found[1:]]


def test_a_file_is_served_as_it_is(sane, tmp_path):
    """Widened it has the bits of the model that it converts to; packed it differs by rounding activations to int8."""
    convert(sane[0], tmp_path / "f32", "--dtype", "f32")
    expected = log_probabilities(tmp_path / "f32", "--dtype", "f32")
    assert log_probabilities(sane[0], "--dtype", "f32", "--quantization", "none") == expected
    packed = [log_probabilities(path, "--dtype", "f32") for path in sane]
    assert packed[0] == packed[1] != expected
    differences = [abs(value - found[token]) for position, found in zip(expected, packed[0])
                   for token, value in position.items() if token in found]
    assert len(differences) > 150 and max(differences) < 0.2


def test_descriptions_of_files_are_not_in_the_users_cache(model, skein_cache):
    """A user's cache would keep one for each file of each test."""
    before = set((skein_cache / "gguf").glob("*/model.gguf"))
    moved = model[0].with_name("moved.gguf")
    moved.hardlink_to(model[0])
    subprocess.run([SKEIN_BIN, "model", "info", moved], check=True, capture_output=True, timeout=60)
    made, = set((skein_cache / "gguf").glob("*/model.gguf")) - before
    assert made.resolve() == moved.resolve()
