#!/usr/bin/env python3
"""Make tiny random encoders of every kind and record what the reference computes on them.

    .venv-dev/bin/python tools/make_golden_encoders.py [OUT_DIR]   (default: tests/data/encoders)

Writes OUT_DIR/NAME/ in HuggingFace layout with a golden.json each. Everything is computed by
`transformers` from the files as written, loaded again, in float64. A golden.json holds for each of
its prompts

    ids, second_segment_begin (null: one segment)
    first, last, mean   the last hidden state's first and last row and the mean of its rows
    outputs             of a classifier: its num_labels outputs

ModernBERT's code asks for float32 here and there; it is given float64 instead.
"""
import json
import re
import shutil

import safetensors.torch
import torch
import transformers
from transformers import AutoModel, AutoModelForSequenceClassification

import make_golden_models as models

SEED = 4711
# length, where the second segment begins
PROMPTS = [(1, None), (7, 3), (33, None), (64, 40), (100, 1)]
# Within the windows of local layers, beyond them, and over three steps of every kernel.
MODERN_PROMPTS = [(length, None) for length in (1, 7, 40, 100, 530)]
DEBERTA_PROMPTS = [(1, None), (7, 3), (40, None), (100, 40), (530, 200)]

BERT = dict(type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=0,
            max_position_embeddings=112)
ROBERTA = dict(type_vocab_size=1, hidden_act="gelu", layer_norm_eps=1e-5, pad_token_id=1,
               max_position_embeddings=112)
SHAPE = dict(vocab_size=64, hidden_size=32, intermediate_size=56, num_hidden_layers=2,
             num_attention_heads=2)
DISTIL = dict(vocab_size=64, dim=32, hidden_dim=56, n_layers=2, n_heads=2, activation="gelu",
              max_position_embeddings=112, pad_token_id=0)
# intermediate_size: no multiple of the kernels' 16 columns.
MODERN = dict(vocab_size=64, hidden_size=32, intermediate_size=56, num_hidden_layers=4,
              num_attention_heads=2, max_position_embeddings=640, pad_token_id=0, bos_token_id=1,
              eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=24,
              hidden_activation="gelu", norm_eps=1e-5)
NOMIC = dict(type_vocab_size=2, hidden_act="silu", layer_norm_eps=1e-12, pad_token_id=0, max_position_embeddings=112,
             rope_parameters={"rope_type": "default", "rope_theta": 1000.0})
GTE = dict(type_vocab_size=1, hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=1, max_position_embeddings=112,
           rope_parameters={"rope_type": "default", "rope_theta": 20000.0})
# The published GTE's own scaling by 2, of a theta of 10,000 and heads of 16: a larger theta, and all frequencies a little lower.
NTK = {"rope_type": "linear", "rope_theta": 20000.0, "factor": 2 ** (2 / 16)}
# As v3 has it: far distances share rows, which have the projections of q and k. Distances of a long prompt pass the largest one.
DEBERTA = dict(vocab_size=64, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, hidden_act="gelu",
               layer_norm_eps=1e-7, pad_token_id=0, max_position_embeddings=640, type_vocab_size=0, position_biased_input=False,
               relative_attention=True, position_buckets=32, max_relative_positions=512, share_att_key=True,
               pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", pooler_hidden_size=32, pooler_hidden_act="gelu")
# The other spellings: every distance has a row of its own, and its own projections.
DEBERTA_PLAIN = {**DEBERTA, "position_buckets": -1, "max_relative_positions": 40, "share_att_key": False, "norm_rel_ebd": "none",
                 "type_vocab_size": 2, "position_biased_input": True, "pos_att_type": "c2p|p2c"}
# Distances of a long prompt pass the largest one, which is 128.
MPNET = dict(vocab_size=64, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, hidden_act="gelu",
             layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2, max_position_embeddings=642,
             relative_attention_num_buckets=32)
# As published files spell it.
OLD_ROPES = dict(global_attn_every_n_layers=3, global_rope_theta=160000.0, local_rope_theta=10000.0)

# name, class, config
MODELS = [
    ("bert", "BertModel", {**SHAPE, **BERT}),
    ("bert-relu", "BertModel",
     {**SHAPE, **BERT, "hidden_act": "relu", "hidden_size": 40, "num_attention_heads": 5}),
    ("bert-gelu-new", "BertModel", {**SHAPE, **BERT, "hidden_act": "gelu_new"}),
    ("bert-classifier", "BertForSequenceClassification", {**SHAPE, **BERT, "num_labels": 3}),
    ("roberta", "RobertaModel", {**SHAPE, **ROBERTA}),
    ("roberta-classifier", "RobertaForSequenceClassification",
     {**SHAPE, **ROBERTA, "num_labels": 2}),
    ("xlm-roberta", "XLMRobertaModel", {**SHAPE, **ROBERTA}),
    ("xlm-roberta-reranker", "XLMRobertaForSequenceClassification",
     {**SHAPE, **ROBERTA, "num_labels": 1}),
    ("distilbert", "DistilBertModel", DISTIL),
    ("distilbert-classifier", "DistilBertForSequenceClassification", {**DISTIL, "num_labels": 2}),
    ("modernbert", "ModernBertModel", MODERN),
    ("modernbert-old-spelling", "ModernBertModel",
     {**MODERN, "num_attention_heads": 1, "local_attention": 128}),
    ("modernbert-biases", "ModernBertForSequenceClassification",
     {**MODERN, "norm_bias": True, "attention_bias": True, "mlp_bias": True,
      "classifier_bias": True, "classifier_pooling": "mean", "classifier_activation": "silu",
      "hidden_activation": "gelu_pytorch_tanh", "num_labels": 3,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                      "sliding_attention"]}),
    ("modernbert-reranker", "ModernBertForSequenceClassification",
     {**MODERN, "classifier_pooling": "cls", "num_labels": 1}),
    ("modernbert-masked-lm", "ModernBertForMaskedLM",
     {**MODERN, "intermediate_size": 48, "num_hidden_layers": 2}),
    # Named by the head they were trained with, which is not read; the first with BERT's old names of tensors.
    ("bert-masked-lm", "BertForMaskedLM", {**SHAPE, **BERT}),
    ("xlm-roberta-masked-lm", "XLMRobertaForMaskedLM", {**SHAPE, **ROBERTA}),
    ("distilbert-masked-lm", "DistilBertForMaskedLM", DISTIL),
    # With the names of tensors and members that transformers gives, and with those of the published files.
    ("nomic-bert", "NomicBertModel", {**SHAPE, **NOMIC}),
    ("nomic-bert-published", "NomicBertModel", {**SHAPE, **NOMIC, "num_attention_heads": 4}),
    ("gte", "GteModel", {**SHAPE, **GTE}),
    ("gte-published", "GteModel", {**SHAPE, **GTE, "type_vocab_size": 0, "rope_parameters": NTK}),
    ("gte-reranker", "GteForSequenceClassification", {**SHAPE, **GTE, "num_labels": 1}),
    ("gte-reranker-published", "GteForSequenceClassification", {**SHAPE, **GTE, "num_labels": 1}),
    ("deberta-v3", "DebertaV2Model", DEBERTA),
    ("deberta-v3-classifier", "DebertaV2ForSequenceClassification",
     {**DEBERTA, "hidden_size": 40, "pooler_hidden_size": 40, "num_attention_heads": 5, "num_labels": 3}),
    ("deberta-v2-classifier", "DebertaV2ForSequenceClassification", {**DEBERTA_PLAIN, "num_labels": 2}),
    ("deberta-v3-masked-lm", "DebertaV2ForMaskedLM", {**DEBERTA, "num_hidden_layers": 1}),
    ("mpnet", "MPNetModel", MPNET),
    ("mpnet-masked-lm", "MPNetForMaskedLM", {**MPNET, "hidden_size": 40, "num_attention_heads": 5}),
    ("mpnet-classifier", "MPNetForSequenceClassification", {**MPNET, "num_labels": 3}),
]


def randomize(model, generator):
    """No weight keeps a trivial value."""
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if "norm" in name.lower() and name.endswith("weight"):
            noise = 1 + 0.3 * noise
        elif name.endswith("bias"):
            noise = 0.5 * noise
        elif "embeddings" not in name:
            gain = 1.6 if any(part in name for part in ("query", "key", "q_lin", "k_lin", "attn.q", "attn.k")) else 1
            noise = noise if "attention_bias" in name else gain * noise / weight.shape[1]**0.5
        weight.data.copy_(noise)


def compute(model, ids, begin):
    arguments = {"input_ids": torch.tensor([ids])}
    if getattr(model.config, "type_vocab_size", 0) > 1 and begin is not None:
        arguments["token_type_ids"] = torch.tensor([[int(i >= begin) for i in range(len(ids))]])
    with torch.no_grad():
        if model.config.model_type in ("nomic_bert", "gte"):
            with models.float32_means_float64():
                out = model(**arguments, output_hidden_states=True)
            hidden = out.hidden_states[-1][0]
        elif model.config.model_type == "modernbert":
            with models.float32_means_float64():
                out = model(**arguments)
                # A head's model says nothing of the states after the final norm.
                hidden = getattr(model, "model", model)(**arguments).last_hidden_state[0]
        else:
            out = model(**arguments, output_hidden_states=True)
            hidden = out.hidden_states[-1][0]
    assert hidden.dtype == torch.float64
    rounded = lambda values: [round(x, 10) for x in values.tolist()]
    golden = {"ids": ids, "second_segment_begin": begin, "first": rounded(hidden[0]),
              "last": rounded(hidden[-1]), "mean": rounded(hidden.mean(dim=0))}
    if hasattr(model, "num_labels") and type(model).__name__.endswith("SequenceClassification"):
        golden["outputs"] = rounded(out.logits[0])
    return golden


def spell_as_published(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key in ("layer_types", "rope_parameters"):
        del config[key]
    config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps({**config, **OLD_ROPES}, indent=2, sort_keys=True) + "\n")


def use_old_names(folder):
    path = folder / "model.safetensors"
    tensors = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
               for name, tensor in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


LIBRARY_TO_NOMIC = [("embeddings.LayerNorm", "emb_ln"), (r"^layers\.", "encoder.layers."), ("self_attn.o_proj", "attn.out_proj"),
                    ("up_proj", "fc11"), ("gate_proj", "fc12"), ("down_proj", "fc2"), ("post_attention_layernorm", "norm1"),
                    ("post_mlp_layernorm", "norm2")]
LIBRARY_TO_GTE = [(r"^gte\.", ""), (r"^layers\.", "encoder.layer."), ("self_attn.o_proj", "attention.o_proj"),
                  ("post_attention_layernorm", "attn_ln"), ("post_mlp_layernorm", "mlp_ln"), (r"^(?!classifier)", "new.")]


def published_tensors(tensors, nomic):
    """Matrices of q, k, v, and of GTE's up, gate, are one each."""
    found = {}
    for name, tensor in tensors.items():
        if "self_attn.q_proj" in name:
            parts = [tensors[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            name, tensor = name.replace("self_attn.q_proj", "attn.Wqkv" if nomic else "attention.qkv_proj"), torch.cat(parts)
        elif "self_attn.k_proj" in name or "self_attn.v_proj" in name or not nomic and "mlp.gate_proj" in name:
            continue
        elif not nomic and "mlp.up_proj" in name:
            tensor = torch.cat([tensor, tensors[name.replace("up_proj", "gate_proj")]])
            name = name.replace("up_proj", "up_gate_proj")
        for old, new in LIBRARY_TO_NOMIC if nomic else LIBRARY_TO_GTE:
            name = re.sub(old, new, name)
        found[name] = tensor
    return found


def published_config(config, nomic):
    rope, heads = config.pop("rope_parameters"), config["num_attention_heads"]
    config["torch_dtype"] = config.pop("dtype")
    if nomic:
        names = {"hidden_size": "n_embd", "intermediate_size": "n_inner", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                 "max_position_embeddings": "n_positions", "layer_norm_eps": "layer_norm_epsilon"}
        config = {names.get(key, key): value for key, value in config.items() if key not in ("hidden_act", "head_dim")}
        return {**config, "activation_function": "swiglu", "rotary_emb_base": rope["rope_theta"], "rotary_emb_fraction": 1.0,
                "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "prenorm": False,
                "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "causal": False}
    linear = rope["rope_type"] == "linear"
    factor = round(rope.get("factor", 1) ** (config["hidden_size"] // heads / 2), 6)
    config["architectures"] = [config["architectures"][0].replace("Gte", "New")]
    if config["architectures"] == ["NewModel"]:
        config["architectures"].append("NewForTokenClassification")
    return {**config, "model_type": "new", "position_embedding_type": "rope", "layer_norm_type": "layer_norm", "pack_qkv": True,
            "rope_theta": rope["rope_theta"] / factor, "rope_scaling": {"type": "ntk", "factor": factor} if linear else None}


def use_published_spelling(folder, tensors):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    nomic = config["model_type"] == "nomic_bert"
    path.write_text(json.dumps(published_config(config, nomic), indent=2, sort_keys=True) + "\n")
    safetensors.torch.save_file(published_tensors(tensors, nomic), folder / "model.safetensors", metadata={"format": "pt"})


def give_double_ropes(model):
    """The frequencies, too, in float64."""
    body = getattr(model, "model", getattr(model, "gte", model))
    with models.float32_means_float64():
        body.rotary_emb = type(body.rotary_emb)(config=model.config)
    if model.config.model_type != "modernbert":
        assert body.rotary_emb.inv_freq.dtype == torch.float64
        return
    for layer_type in body.rotary_emb.layer_types:
        assert getattr(body.rotary_emb, f"{layer_type}_inv_freq").dtype == torch.float64


def make_model(folder, name, members, seed):
    cls = getattr(transformers, name)
    model = cls(cls.config_class(**members))
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    modern = model.config.model_type == "modernbert"
    rotates = model.config.model_type in ("nomic_bert", "gte")
    if rotates:
        own = {name: weight.detach().clone().contiguous() for name, weight in model.named_parameters()}
        safetensors.torch.save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
    if folder.name == "modernbert-old-spelling":
        spell_as_published(folder)
    if folder.name == "bert-masked-lm":
        use_old_names(folder)
    load = AutoModel if name.endswith("Model") else AutoModelForSequenceClassification
    if name.endswith("MaskedLM"):
        load = transformers.AutoModelForMaskedLM
    model = load.from_pretrained(folder, attn_implementation="eager").eval().double()
    assert type(model) is cls
    if rotates:
        assert all(torch.equal(weight.float(), own[name]) for name, weight in model.named_parameters())
    if rotates and folder.name.endswith("-published"):
        use_published_spelling(folder, own)
    if modern or rotates:
        give_double_ropes(model)
    prompts = []
    lengths = {"modernbert": MODERN_PROMPTS, "deberta-v2": DEBERTA_PROMPTS, "mpnet": MODERN_PROMPTS}.get(model.config.model_type, PROMPTS)
    for length, begin in lengths:
        ids = torch.randint(3, 64, (length,), generator=generator).tolist()
        prompts.append(compute(model, ids, begin))
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed,
              "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name)


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "encoders", SEED)
