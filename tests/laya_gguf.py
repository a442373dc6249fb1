"""Writes the directory of a Laya model as the GGUF file that llama.cpp's converter makes of it.

    python tests/laya_gguf.py FOLDER FILE f32|bf16|q8_0
"""
import json
import pathlib
import shutil
import sys

import gguf
import numpy

from encoder_gguf import MODEL_PARTS, MODERN_PARTS, add_config, add_tokenizer, mmbert_tokenizer
from safetensors_file import read_safetensors, widened, write_safetensors

ARCHITECTURE = "modern-bert"
HEAD_PARTS = {"norm1": "attn_norm", "self_attn.in_proj": "attn_qkv", "self_attn.out_proj": "attn_output",
              "norm2": "ffn_norm", "linear1": "ffn_up", "linear2": "ffn_down"}
SCORER_PARTS = {"type_emb": "token_types", "scorer.0": "cls.norm", "scorer.1": "cls", "scorer.3": "cls.output"}
DROPPED = ("act_head.", "temperature")


def text_or_json(name):
    return "{{ " + name + " if " + name + " is string else " + name + " | tojson }}"


def template(tokens):
    """The prompt with the special tokens of a tokenizer_config.json."""
    description = text_or_json("o.description")
    option = ("{% if type == 'choice' %}{{ o.key }}{% if o.description %}: " + description + "{% endif %}"
              "{% elif type == 'score' %}level {{ o.key }}: " + description +
              "{% else %}{{ o.key }}: {% if o.description %}" + description +
              "{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}")
    sep = tokens["sep_token"]
    return (tokens["cls_token"] + "{{ type }} question: " + text_or_json("instructions") + sep + "{% for o in options %}" +
            tokens["mask_token"] + " " + option + "{% endfor %}" + sep + text_or_json("state") + sep)


def in_file(name, num_layers):
    """The name of a tensor in the file, whose encoder has `num_layers` layers; None: it is left out."""
    if name.startswith(DROPPED):
        return None
    stem, end = name.replace("in_proj_", "in_proj.").rsplit(".", 1)
    if stem in SCORER_PARTS:
        return f"{SCORER_PARTS[stem]}.{end}"
    if stem.startswith("head.layers."):
        layer, part = stem.removeprefix("head.layers.").split(".", 1)
        return f"blk.{num_layers + int(layer)}.{HEAD_PARTS[part]}.{end}"
    stem = stem.removeprefix("encoder.")
    if stem in MODEL_PARTS:
        return f"{MODEL_PARTS[stem]}.{end}"
    layer, part = stem.removeprefix("layers.").split(".", 1)
    return f"blk.{layer}.{MODERN_PARTS[part]}.{end}"


def add_decision(writer, decision, tokens):
    for name, value in (("type", "laya"), ("block_count", decision["head_layers"]),
                        ("max_head_tokens", decision.get("head_max_len", 256))):
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(f"{ARCHITECTURE}.decision.{name}", value)
    known = dict(zip(("choice", "score", "noul"), decision.get("temperature", [])))
    for name, value in decision.get("temperature_by_options", {}).items():
        known[name.replace(":", ".").replace("-", "_").rstrip("+")] = value
    for name, value in known.items():
        writer.add_float32(f"{ARCHITECTURE}.decision.temperature.{name}", value)
    writer.add_token_type_count(3)
    writer.add_chat_template([{"name": "systemone", "template": template(tokens)}])


def write_laya(folder, path, kind="f32", change=lambda values: None, edit=lambda writer: None):
    """Matrices have the type `kind`, if their rows are whole blocks of it, else f16; vectors and the types' rows f32. `change`
    gets the tensors by their names in the file, `edit` the writer with all metadata: both may change them."""
    encoder = json.loads((folder / "encoder/config.json").read_text())
    decision = json.loads((folder / "rl_agent_config.json").read_text())
    tokens = json.loads((folder / "tokenizer/tokenizer_config.json").read_text())
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    num_layers, of_head = encoder["num_hidden_layers"], decision["head_layers"]
    widths = [encoder["intermediate_size"]] * num_layers + [4 * encoder["hidden_size"]] * of_head
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    add_config(writer, {**encoder, "num_hidden_layers": num_layers + of_head, "intermediate_size": widths}, ARCHITECTURE, 0)
    add_tokenizer(writer, folder / "tokenizer", tensors["encoder.embeddings.tok_embeddings.weight"].shape[0])
    add_decision(writer, decision, tokens)
    edit(writer)
    named = {in_file(name, num_layers): values for name, values in tensors.items()}
    named.pop(None, None)
    change(named)
    wanted = gguf.GGMLQuantizationType[kind.upper()]
    for name, values in named.items():
        if values.ndim == 1 or name == "token_types.weight":
            writer.add_tensor(name, numpy.ascontiguousarray(values))
        elif kind == "f32" or values.shape[1] % gguf.GGML_QUANT_SIZES[wanted][0] == 0:
            writer.add_tensor(name, gguf.quants.quantize(values, wanted), raw_dtype=wanted)
        else:
            writer.add_tensor(name, values.astype(numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def with_mmbert_tokens(model, folder):
    """A copy of the model with the tokens of an mmBERT; embeddings of more tokens are random."""
    size, words = 1502, "encoder.embeddings.tok_embeddings.weight"
    shutil.copytree(model, folder)
    (folder / "tokenizer/tokenizer.json").write_text(json.dumps(mmbert_tokenizer()))
    (folder / "tokenizer/tokenizer_config.json").write_text(
        json.dumps({"cls_token": "<bos>", "sep_token": "<eos>", "mask_token": "<mask>"}))
    config = json.loads((folder / "encoder/config.json").read_text())
    (folder / "encoder/config.json").write_text(json.dumps(config | {"vocab_size": size}))
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    known = tensors[words]
    more = numpy.random.default_rng(1).standard_normal((size - len(known), known.shape[1])).astype(numpy.float32)
    tensors[words] = numpy.concatenate([known, more * known.std()])
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


if __name__ == "__main__":
    write_laya(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
