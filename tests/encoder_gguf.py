"""Writes the directory of an encoder as the GGUF file that llama.cpp's converter makes of it."""
import base64
import json
import pathlib

import gguf
import numpy

from safetensors_file import read_safetensors, widened

BERT_PARTS = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
              "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
              "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
              "attention.q_lin": "attn_q", "attention.k_lin": "attn_k", "attention.v_lin": "attn_v",
              "attention.out_lin": "attn_output", "sa_layer_norm": "attn_output_norm", "ffn.lin1": "ffn_up",
              "ffn.lin2": "ffn_down", "output_layer_norm": "layer_output_norm"}
NOMIC_PARTS = {"attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output", "norm1": "attn_output_norm", "mlp.fc11": "ffn_up",
               "mlp.fc12": "ffn_gate", "mlp.fc2": "ffn_down", "norm2": "layer_output_norm"}
MODERN_PARTS = {"attn_norm": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp_norm": "ffn_norm",
                "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down"}
MODEL_PARTS = {"embeddings.word_embeddings": "token_embd", "embeddings.tok_embeddings": "token_embd",
               "embeddings.position_embeddings": "position_embd", "embeddings.token_type_embeddings": "token_types",
               "embeddings.LayerNorm": "token_embd_norm", "embeddings.norm": "token_embd_norm", "emb_ln": "token_embd_norm",
               "final_norm": "output_norm", "head.dense": "cls", "head.norm": "cls.norm", "classifier.dense": "cls",
               "classifier.out_proj": "cls.output", "classifier": "cls.output", "pre_classifier": "cls"}
ARCHITECTURES = {"nomic_bert": "nomic-bert", "modernbert": "modern-bert"}  # any other is a BERT
DROPPED = ("pooler.", "cls.", "lm_head.", "decoder.", "vocab_", "embeddings.position_ids")
TOKENIZERS = pathlib.Path(__file__).parent / "data/tokenizers"
POOLING = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS, "lasttoken": gguf.PoolingType.LAST}


def mmbert_tokenizer():
    """tests/data/tokenizers/mmbert-style with the cuts of mmBERT's files: a space begins a word, and newlines are tokens."""
    tokenizer = json.loads((TOKENIZERS / "mmbert-style/tokenizer.json").read_text())
    tokenizer["normalizer"] = None
    tokenizer["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    newlines = next(token for token in tokenizer["added_tokens"] if token["content"] == "\n\n")
    tokenizer["added_tokens"].append({**newlines, "content": "\n", "id": tokenizer["model"]["vocab"]["\n"]})
    tokenizer["added_tokens"].sort(key=lambda token: token["id"])
    return tokenizer


def in_file(name, parts):
    """The name of a tensor in the file; None: it is left out."""
    for prefix in ("model.", "bert.", "roberta.", "distilbert."):
        name = name.removeprefix(prefix)
    if name.startswith(DROPPED):
        return None
    stem, end = name.rsplit(".", 1)
    if stem in MODEL_PARTS:
        return f"{MODEL_PARTS[stem]}.{end}"
    layer, part = stem.split("layers." if ".layers." in stem or stem.startswith("layers.") else "layer.", 1)[1].split(".", 1)
    return f"blk.{layer}.{parts[part]}.{end}"


def add_word_pieces(writer, tokenizer, size):
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens = [f"[PAD{i}]" for i in range(size)]
    types = [gguf.TokenType.UNUSED] * size
    for token, i in tokenizer["model"]["vocab"].items():
        types[i] = gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL
        tokens[i] = token if i in special else token[2:] if token.startswith("##") else "\u2581" + token
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)


def add_unigrams(writer, tokenizer, size):
    unknown = tokenizer["model"]["unk_id"]
    tokens, scores, types = [f"[PAD{i}]" for i in range(size)], [-10000.0] * size, [gguf.TokenType.UNUSED] * size
    for i, (token, score) in enumerate(tokenizer["model"]["vocab"]):
        tokens[i], scores[i] = token, score
        types[i] = gguf.TokenType.NORMAL
    for token in tokenizer["added_tokens"]:
        i = token["id"]
        tokens[i], types[i] = token["content"], gguf.TokenType.UNKNOWN if i == unknown else gguf.TokenType.CONTROL
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    if tokenizer["normalizer"]:
        writer.add_precompiled_charsmap(base64.b64decode(tokenizer["normalizer"]["precompiled_charsmap"]))


def add_merges(writer, tokenizer, size, pre):
    tokens, types = [f"[PAD{i}]" for i in range(size)], [gguf.TokenType.UNUSED] * size
    for token, i in tokenizer["model"]["vocab"].items():
        tokens[i], types[i] = token, gguf.TokenType.NORMAL
    for token in tokenizer["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def add_tokenizer(writer, folder, size):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    kind = tokenizer["model"]["type"]
    if kind == "WordPiece":
        add_word_pieces(writer, tokenizer, size)
    elif kind == "Unigram":
        add_unigrams(writer, tokenizer, size)
    else:
        roberta = tokenizer["post_processor"]["type"] == "RobertaProcessing"
        metaspace = tokenizer["pre_tokenizer"]["type"] == "Metaspace"
        add_merges(writer, tokenizer, size, "roberta-bpe" if roberta else "mmbert" if metaspace else "modern-bert")
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    for names, add in ((("[CLS]", "<s>", "<bos>"), writer.add_bos_token_id), (("[SEP]", "</s>", "<eos>"), writer.add_sep_token_id),
                       (("[SEP]", "</s>", "<eos>"), writer.add_eos_token_id), (("[UNK]", "<unk>"), writer.add_unk_token_id),
                       (("[PAD]", "<pad>"), writer.add_pad_token_id), (("[MASK]", "<mask>"), writer.add_mask_token_id)):
        found = [ids[name] for name in names if name in ids]
        if found:
            add(found[0])


def add_config(writer, config, architecture, first_position):
    writer.add_embedding_length(config.get("hidden_size") or config.get("dim") or config["n_embd"])
    writer.add_block_count(config.get("num_hidden_layers") or config.get("n_layers") or config["n_layer"])
    writer.add_feed_forward_length(config.get("intermediate_size") or config.get("hidden_dim") or config["n_inner"])
    writer.add_head_count(config.get("num_attention_heads") or config.get("n_heads") or config["n_head"])
    writer.add_context_length((config.get("max_position_embeddings") or config["n_positions"]) - first_position)
    writer.add_layer_norm_eps(config.get("layer_norm_eps") or config.get("norm_eps") or config.get("layer_norm_epsilon") or 1e-12)
    writer.add_causal_attention(False)
    if architecture != "modern-bert":
        writer.add_token_type_count(config.get("type_vocab_size", 1))
    if architecture == "nomic-bert":
        writer.add_rope_freq_base(config["rotary_emb_base"])
    if architecture == "modern-bert":
        ropes = config.get("rope_parameters") or {}
        for kind, key, add in (("full_attention", "global_rope_theta", writer.add_rope_freq_base),
                               ("sliding_attention", "local_rope_theta", writer.add_rope_freq_base_swa)):
            add(ropes[kind]["rope_theta"] if ropes else config[key])
        writer.add_sliding_window(config["local_attention"])
        writer.add_sliding_window_pattern(config.get("global_attn_every_n_layers") or 3)
        writer.add_string(f"{architecture}.hidden_activation", config["hidden_activation"])


def write_encoder_gguf(folder, path, kind="f32", pooling=None, labels=None, pooler=False):
    """Matrices have the type `kind`, if their rows are whole blocks of it, else f16; vectors and small tables f32.
    `pooling`: of the embeddings. `pooler`: the layer in front of BERT's classes is kept, as no published converter does."""
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES.get(config["model_type"], "bert")
    parts = {"bert": BERT_PARTS, "nomic-bert": NOMIC_PARTS, "modern-bert": MODERN_PARTS}[architecture]
    roberta = config["model_type"] in ("roberta", "xlm-roberta")
    first_position = config["pad_token_id"] + 1 if roberta else 0
    writer = gguf.GGUFWriter(path, architecture)
    add_config(writer, config, architecture, first_position)
    if pooling:
        writer.add_pooling_type(POOLING[pooling])
    if labels:
        writer.add_classifier_output_labels(labels)
    tensors = read_safetensors(folder / "model.safetensors")
    for name, values in tensors.items():
        values = widened(values)
        in_gguf = in_file(name, parts)
        if pooler and name.startswith("bert.pooler.dense."):
            in_gguf = "cls." + name.rsplit(".", 1)[1]
        if in_gguf is None:
            continue
        if in_gguf == "token_embd.weight":
            add_tokenizer(writer, folder, values.shape[0])
        if in_gguf == "position_embd.weight":
            values = values[first_position:]
        wanted = gguf.GGMLQuantizationType[kind.upper()]
        block = gguf.GGML_QUANT_SIZES[wanted][0]
        if values.ndim == 1 or in_gguf in ("position_embd.weight", "token_types.weight"):
            writer.add_tensor(in_gguf, numpy.ascontiguousarray(values))
        elif wanted == gguf.GGMLQuantizationType.F32 or values.shape[1] % block == 0:
            writer.add_tensor(in_gguf, gguf.quants.quantize(values, wanted), raw_dtype=wanted)
        else:
            writer.add_tensor(in_gguf, values.astype(numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
