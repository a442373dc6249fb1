"""Writes a Qwen3.5 directory, or a Kev one of a whole decoder, as the GGUF file that llama.cpp's converter makes of it."""
import collections
import io
import json
import pickle
import zipfile

import gguf
import numpy

from safetensors_file import read_safetensors, widened

PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "linear_attn.in_proj_qkv": "attn_qkv",
         "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_b": "ssm_beta",
         "linear_attn.out_proj": "ssm_out", "linear_attn.norm": "ssm_norm", "linear_attn.conv1d": "ssm_conv1d"}
KEV_TEMPLATE = ("<|fim_prefix|>{{ state }}<|fim_middle|>{{ instructions }}{% for o in options %}<|box_start|>"
                "{% if type == 'score' %}{% if o.description %}{{ o.description }}{% endif %}{% else %}"
                "{% if type != 'noul' %}{{ o.key }}{% elif o.key == 'true' %}yes{% else %}no{% endif %}"
                "{% if o.description %}: {{ o.description }}{% endif %}{% endif %}<|box_end|>{% endfor %}<|fim_suffix|>")


def tiled(values, config, width, axis=0):
    """Heads of v side by side, those of one head of k together: in a file the first of each come first, then the second."""
    keys, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    order = [k * (heads // keys) + j for j in range(heads // keys) for k in range(keys)]
    return numpy.take(values, [head * width + i for head in order for i in range(width)], axis)


def in_file(name, values, config):
    """(name, values) of a weight in the file."""
    if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
        values = values + numpy.float32(1)  # these multiply by one more than their weight
    whole = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    name = name.removeprefix("model.")
    if name in whole:
        return whole[name], values
    _, layer, part = name.split(".", 2)
    at, width, keys = f"blk.{layer}.", config["linear_value_head_dim"], 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    if part == "linear_attn.A_log":
        return at + "ssm_a", tiled(-numpy.exp(values), config, 1)
    if part == "linear_attn.dt_bias":
        return at + "ssm_dt.bias", tiled(values, config, 1)
    part = part.removesuffix(".weight")
    if part == "linear_attn.conv1d":
        values = values[:, 0, :]
    if part in ("linear_attn.conv1d", "linear_attn.in_proj_qkv"):
        values = numpy.concatenate([values[:keys], tiled(values[keys:], config, width)])
    elif part == "linear_attn.in_proj_z":
        values = tiled(values, config, width)
    elif part in ("linear_attn.in_proj_a", "linear_attn.in_proj_b"):
        values = tiled(values, config, 1)
    elif part == "linear_attn.out_proj":
        values = tiled(values, config, width, axis=1)
    return f"{at}{PARTS[part]}.weight", values


def add_sizes(writer, config, further_layers=0):
    """The sizes that every decoder has."""
    writer.add_block_count(config["num_hidden_layers"] + further_layers)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])


def add_vocabulary(writer, folder, size):
    """The directory's tokenizer, or names that no text has."""
    path = folder / "tokenizer.json"
    writer.add_tokenizer_model("gpt2")
    if not path.exists():
        writer.add_tokenizer_pre("qwen35")
        writer.add_token_list(["a", "b", "ab", *(f"<{i}>" for i in range(3, size))])
        writer.add_token_types([1] * (size - 1) + [3])
        writer.add_token_merges(["a b"])
        return
    file = json.loads(path.read_text())
    added = {token["id"]: token for token in file["added_tokens"]}
    tokens = {id: text for text, id in file["model"]["vocab"].items()} | {id: token["content"] for id, token in added.items()}
    writer.add_tokenizer_pre("gpt-4o")
    writer.add_token_list([tokens.get(i, f"<unused{i}>") for i in range(size)])
    writer.add_token_types([3 if added.get(i, {}).get("special") else 4 if i in added else 1 if i in tokens else 5 for i in range(size)])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in file["model"]["merges"]])
    end = next((id for id, text in tokens.items() if text == "<|endoftext|>"), None)
    if end is not None:
        writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


class Torch(pickle.Unpickler):
    """Reads torch.save's pickles of f32 tensors in row-major order as arrays."""

    def __init__(self, archive):
        self.archive, self.root = archive, archive.namelist()[0].split("/")[0]
        super().__init__(io.BytesIO(archive.read(f"{self.root}/data.pkl")))

    def persistent_load(self, key):
        return numpy.frombuffer(self.archive.read(f"{self.root}/data/{key[2]}"), numpy.float32)

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, *rest: storage[offset:offset + int(numpy.prod(size))].reshape(size)
        return collections.OrderedDict if name == "OrderedDict" else type(name, (), {})


def read_head(folder):
    return Torch(zipfile.ZipFile(folder / "head.pt")).load()


def write_qwen35(folder, path, kind=gguf.GGMLQuantizationType.F32, change=lambda writer: None, further_layers=0):
    """`change` adds metadata; `further_layers` that guess further tokens are added, of zeros."""
    config = json.loads((folder / "config.json").read_text())
    rope = config["rope_parameters"]
    writer = gguf.GGUFWriter(path, "qwen35")
    add_sizes(writer, config, further_layers)
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(rope["rope_theta"])
    rotated = int(config["head_dim"] * rope["partial_rotary_factor"])
    writer.add_rope_dimension_count(rotated)
    writer.add_rope_dimension_sections([rotated // 2, 0, 0, 0])
    for name, value in (("ssm.conv_kernel", config["linear_conv_kernel_dim"]),
                        ("ssm.inner_size", config["linear_value_head_dim"] * config["linear_num_value_heads"]),
                        ("ssm.state_size", config["linear_key_head_dim"]),
                        ("ssm.time_step_rank", config["linear_num_value_heads"]),
                        ("ssm.group_count", config["linear_num_key_heads"]),
                        ("full_attention_interval",
                         config.get("full_attention_interval") or config["layer_types"].index("full_attention") + 1)):
        writer.add_uint32(f"qwen35.{name}", value)
    if further_layers:
        writer.add_uint32("qwen35.nextn_predict_layers", further_layers)
    add_vocabulary(writer, folder, config["vocab_size"])
    change(writer)

    def add(name, values):
        values = numpy.ascontiguousarray(values)
        if values.ndim == 1 or name.endswith("ssm_conv1d.weight") or values.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] != 0:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    for name, values in read_safetensors(folder / "model.safetensors").items():
        if not (name == "lm_head.weight" and config["tie_word_embeddings"]) and not name.startswith("mtp."):
            add(*in_file(name, widened(values), config))
    for layer in range(further_layers):
        at = f"blk.{config['num_hidden_layers'] + layer}."
        for name in ("attn_norm.weight", "nextn.enorm.weight"):
            add(at + name, numpy.zeros(config["hidden_size"], numpy.float32))
    if (folder / "head.pt").exists():
        head = read_head(folder)["head"]
        add("cls.output.weight", numpy.concatenate([head["q.weight"], head["k.weight"]]))
        writer.add_tensor("cls.output.bias", numpy.concatenate([head["q.bias"], head["k.bias"]]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_kev(folder, path, kind=gguf.GGMLQuantizationType.F32, template=KEV_TEMPLATE, temperatures=None):
    """`temperatures`: name -> number; that of head.pt for all types of questions if there are none."""
    trained = read_head(folder)
    known = temperatures or dict.fromkeys(("choice", "score", "noul"), trained["temperature"])

    def change(writer):
        writer.add_uint32("qwen35.embedding_length_out", 2 * trained["head_dim"])
        writer.add_string("qwen35.decision.type", "kev")
        for name, value in known.items():
            writer.add_float32(f"qwen35.decision.temperature.{name}", value)
        writer.add_chat_template([{"name": "systemone", "template": template}])

    return write_qwen35(folder, path, kind, change)
