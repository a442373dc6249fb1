#!/usr/bin/env python3
"""Write a Kev model of random weights, and the same model as a GGUF file for llama.cpp.

    python tools/write_kev.py OUT_DIR [SHAPE] [--gguf FILE FORM]   (SHAPE: qwen3.5-0.8b or tiny-qwen3.5)

OUT_DIR gets the weights of the whole decoder (skein model init) and head.pt, as the family's trainer
writes them; FORM is bf16, f32 or q8_0. The tokenizer is that of tests/data/kev. Needs torch, and
the package gguf for a file.
"""
import argparse
import json
import math
import pathlib
import subprocess

import torch
from safetensors import safe_open

from serving import SKEIN

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENIZER = ROOT / "tests/data/kev/qwen3-adapter/base"
HEAD_WIDTH = 256
# What an option's text is in the template of a file, as conversion writes it: names, then descriptions.
TEMPLATE = ("<|fim_prefix|>{{ state }}<|fim_middle|>{{ instructions }}{% for o in options %}<|box_start|>"
            "{% if type == 'score' %}{% if o.description %}{{ o.description }}{% endif %}{% else %}"
            "{% if type != 'noul' %}{{ o.key }}{% elif o.key == 'true' %}yes{% else %}no{% endif %}"
            "{% if o.description %}: {{ o.description }}{% endif %}{% endif %}<|box_end|>{% endfor %}<|fim_suffix|>")
PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
         "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.out_proj": "ssm_out",
         "linear_attn.norm": "ssm_norm", "linear_attn.conv1d": "ssm_conv1d"}


def write_model(out, shape):
    if (out / "head.pt").exists():
        return
    subprocess.run([SKEIN, "model", "init", "--shape", shape, "--dtype", "bf16", "--seed", "1", "--tokenizer", TOKENIZER, out],
                   check=True)
    width = json.loads((out / "config.json").read_text())["hidden_size"]
    generator = torch.Generator().manual_seed(1)
    head = {f"{part}.{kind}": torch.randn(size, generator=generator) / math.sqrt(width)
            for part in "qk" for kind, size in (("weight", (HEAD_WIDTH, width)), ("bias", (HEAD_WIDTH,)))}
    torch.save({"base": "base", "head": head, "head_dim": HEAD_WIDTH, "temperature": 1.0, "option_isolation": False,
                "special_embeddings": False, "lora": 0}, out / "head.pt")


class Heads:
    """The order of value heads: those of one key head beside each other here, the first of each key head in a file."""

    def __init__(self, config):
        self.keys, self.values = config["linear_num_key_heads"], config["linear_num_value_heads"]
        self.width = config["linear_value_head_dim"]
        self.key_rows = 2 * self.keys * config["linear_key_head_dim"]

    def tiled(self, values, width, dim=0):
        shape = values.shape
        split = values.reshape(*shape[:dim], self.keys, self.values // self.keys, width, *shape[dim + 1:])
        return split.transpose(dim, dim + 1).reshape(shape)

    def behind_keys(self, values):
        """Of rows of q, k and v: those of v."""
        return torch.cat([values[:self.key_rows], self.tiled(values[self.key_rows:], self.width)])


def tensor_of(name, values, heads):
    """The name and the values in a file of a tensor."""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
    if name in whole:
        return whole[name], values
    if name == "model.norm.weight":
        return "output_norm.weight", values + 1
    _, _, layer, part = name.split(".", 3)
    at = f"blk.{layer}."
    if part == "linear_attn.A_log":
        return at + "ssm_a", heads.tiled(-torch.exp(values), 1)
    if part == "linear_attn.dt_bias":
        return at + "ssm_dt.bias", heads.tiled(values, 1)
    part = part.removesuffix(".weight")
    if part == "linear_attn.conv1d":
        values = heads.behind_keys(values.squeeze(1))
    elif part == "linear_attn.in_proj_qkv":
        values = heads.behind_keys(values)
    elif part == "linear_attn.in_proj_z":
        values = heads.tiled(values, heads.width)
    elif part in ("linear_attn.in_proj_a", "linear_attn.in_proj_b"):
        values = heads.tiled(values, 1)
    elif part == "linear_attn.out_proj":
        values = heads.tiled(values, heads.width, dim=1)
    elif part.endswith("norm") and part != "linear_attn.norm":
        values = values + 1  # these norms multiply by one more than their weight
    return f"{at}{PARTS[part]}.weight", values


def add_tokenizer(writer, vocab_size):
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    model, added = tokenizer["model"], {token["id"]: token for token in tokenizer["added_tokens"]}
    tokens = {id_: text for text, id_ in model["vocab"].items()} | {id_: token["content"] for id_, token in added.items()}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-4o")
    writer.add_token_list([tokens.get(i, f"<unused{i}>") for i in range(vocab_size)])
    writer.add_token_types([3 if added.get(i, {}).get("special") else 4 if i in added else 1 if i in tokens else 5
                            for i in range(vocab_size)])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_eos_token_id(next(id_ for id_, token in added.items() if token["content"] == "<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template([{"name": "systemone", "template": TEMPLATE}])


def write_gguf(model, path, form):
    import gguf

    c = json.loads((model / "config.json").read_text())
    rope = c["rope_parameters"]
    interval = c.get("full_attention_interval") or c["layer_types"].index("full_attention") + 1
    writer = gguf.GGUFWriter(path, "qwen35")
    writer.add_name(model.name)
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(c["head_dim"])
    writer.add_value_length(c["head_dim"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_rope_freq_base(rope["rope_theta"])
    rotated = int(c["head_dim"] * rope["partial_rotary_factor"])
    writer.add_rope_dimension_count(rotated)
    writer.add_rope_dimension_sections([rotated // 2, 0, 0, 0])
    writer.add_uint32("qwen35.ssm.conv_kernel", c["linear_conv_kernel_dim"])
    writer.add_uint32("qwen35.ssm.inner_size", c["linear_value_head_dim"] * c["linear_num_value_heads"])
    writer.add_uint32("qwen35.ssm.state_size", c["linear_key_head_dim"])
    writer.add_uint32("qwen35.ssm.time_step_rank", c["linear_num_value_heads"])
    writer.add_uint32("qwen35.ssm.group_count", c["linear_num_key_heads"])
    writer.add_uint32("qwen35.full_attention_interval", interval)
    writer.add_uint32("qwen35.embedding_length_out", 2 * HEAD_WIDTH)
    writer.add_string("qwen35.decision.type", "kev")
    for kind in ("choice", "score", "noul"):
        writer.add_float32(f"qwen35.decision.temperature.{kind}", 1.0)
    add_tokenizer(writer, c["vocab_size"])
    kind = gguf.GGMLQuantizationType[form.upper()]
    heads = Heads(c)
    for file in sorted(model.glob("*.safetensors")):
        with safe_open(file, "pt") as source:
            for name in source.keys():
                if name == "lm_head.weight" and c["tie_word_embeddings"]:
                    continue
                target, values = tensor_of(name, source.get_tensor(name).float(), heads)
                plain = values.dim() == 1 or target.endswith("ssm_conv1d.weight")
                values = values.contiguous().numpy()
                if plain or form == "f32":
                    writer.add_tensor(target, values)
                else:
                    writer.add_tensor(target, gguf.quants.quantize(values, kind), raw_dtype=kind)
    head = torch.load(model / "head.pt")["head"]
    writer.add_tensor("cls.output.weight", torch.cat([head["q.weight"], head["k.weight"]]).numpy())
    writer.add_tensor("cls.output.bias", torch.cat([head["q.bias"], head["k.bias"]]).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("shape", nargs="?", default="qwen3.5-0.8b")
    parser.add_argument("--gguf", nargs=2, metavar=("FILE", "FORM"))
    args = parser.parse_args()
    write_model(args.out, args.shape)
    if args.gguf:
        write_gguf(args.out, pathlib.Path(args.gguf[0]), args.gguf[1])


if __name__ == "__main__":
    main()
