#!/usr/bin/env python3
"""Writes a Qwen3 model directory as a GGUF file, for engines that read nothing else.

    python3 tools/write_gguf.py MODEL FILE [bf16|f16|q8_0|q4_0] [vocabulary]

Matrices in the given format, norms in f32. The file has no tokenizer of use: benchmarks feed token ids. With
`vocabulary` it has names for its tokens, which servers insist on. Needs the package gguf.
"""
import json
import pathlib
import struct
import sys

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def gguf_name(name):
    """model.layers.3.mlp.up_proj.weight -> blk.3.ffn_up.weight"""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    if name in whole:
        return whole[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"


def tensors(folder):
    """(name, values as f32) of the bf16 tensors of a directory with one safetensors file or several."""
    import numpy

    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            header_bytes = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(header_bytes))
        data = numpy.memmap(path, dtype="uint8", mode="r", offset=8 + header_bytes)
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if entry["dtype"] != "BF16":
                sys.exit(f"{name} is {entry['dtype']}, must be BF16")
            begin, end = entry["data_offsets"]
            halves = numpy.frombuffer(data[begin:end], dtype="uint16").astype("uint32")
            yield name, (halves << 16).view("float32").reshape(entry["shape"])


def add_vocabulary(writer, size):
    """Names for so many tokens, for engines that insist on a tokenizer: 256 bytes, then numbers."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    tokens = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
    tokens += ["aa", *(f"<{i}>" for i in range(len(tokens) + 1, size))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (size - 1) + [3])
    writer.add_token_merges(["a a"])
    writer.add_eos_token_id(size - 1)
    writer.add_pad_token_id(size - 1)
    writer.add_bos_token_id(size - 1)
    writer.add_chat_template("{{ messages[0].content }}")


def write_gguf(folder, path, form, vocabulary=False):
    import gguf

    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] != "qwen3":
        sys.exit(f"model_type is {config['model_type']}, must be qwen3")
    kind = gguf.GGMLQuantizationType[form.upper()]
    file_type = gguf.LlamaFileType["MOSTLY_" + form.upper()]
    unfinished = path.with_suffix(".part")
    writer = gguf.GGUFWriter(unfinished, "qwen3")
    writer.add_name(folder.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if vocabulary:
        add_vocabulary(writer, config["vocab_size"])
    else:
        writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(file_type)
    for name, values in tensors(folder):
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        if values.ndim == 1:
            writer.add_tensor(gguf_name(name), values)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.rename(path)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    write_gguf(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "bf16",
               vocabulary=sys.argv[4:] == ["vocabulary"])
