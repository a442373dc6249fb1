"""`skein model convert` against the package gguf: every type of elements bit for bit, and a merged adapter."""
import json
import struct
import subprocess

import gguf
import numpy
import pytest

from safetensors_file import write_safetensors
from skein_server import SKEIN_BIN

Type = gguf.GGMLQuantizationType
TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1]
WIDTH, MLP, HEADS, KV_HEADS, LAYERS, TOKENS = 64, 96, 4, 2, 6, 300
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
    for block in blocks[::3]:
        block[:2] = numpy.frombuffer(struct.pack("<H", random.choice(EXTREME_HALVES)), numpy.uint8)
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


def bf16(array):
    """Rounded to nearest even, as bits; of numbers, not of NaN."""
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + numpy.uint32(0x7fff) + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def safetensors(path):
    """name -> bits of the elements, as unsigned integers."""
    data = numpy.memmap(path, numpy.uint8, mode="r")
    header_bytes = struct.unpack("<Q", data[:8])[0]
    header = json.loads(bytes(data[8:8 + header_bytes]))
    header.pop("__metadata__", None)
    kinds = {"F32": numpy.uint32, "BF16": numpy.uint16}
    return {name: numpy.frombuffer(data[8 + header_bytes + entry["data_offsets"][0]:
                                        8 + header_bytes + entry["data_offsets"][1]],
                                   kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def same_bits(found, expected):
    """NaN equals NaN: which one comes out of arithmetic is the processor's choice."""
    is_nan = numpy.isnan(expected)
    assert numpy.array_equal(numpy.isnan(found.view(numpy.float32)), is_nan)
    assert numpy.array_equal(found[~is_nan], expected.view(numpy.uint32)[~is_nan])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A Llama whose layers have a type of elements each; (file, what the model's matrices must be)."""
    random = numpy.random.default_rng(7)
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    writer = gguf.GGUFWriter(path, "llama")
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
    writer.add_token_list([f"<{i}>" for i in range(TOKENS)])
    writer.add_token_types([1] * (TOKENS - 1) + [3])
    writer.add_token_merges(["a b"])
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, expected


def convert(file, out, *args):
    subprocess.run([SKEIN_BIN, "model", "convert", file, out, *args], check=True, timeout=60)
    return safetensors(out / "model.safetensors")


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


def test_a_gguf_file_is_not_served(model):
    path, _ = model
    for argument in (path, path.parent):
        run = subprocess.run([SKEIN_BIN, "run", argument, "--prompt", "x"], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1
        assert f"skein model convert {path}" in run.stderr
