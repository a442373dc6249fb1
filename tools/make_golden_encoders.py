#!/usr/bin/env python3
"""Make tiny random encoders of every kind and record what the reference computes on them.

    .venv-dev/bin/python tools/make_golden_encoders.py [OUT_DIR]   (default: tests/data/encoders)

Writes OUT_DIR/NAME/ in HuggingFace layout with a golden.json each. Everything is computed by
`transformers` from the files as written, loaded again, in float64. A golden.json holds for each of
its prompts

    ids, second_segment_begin (null: one segment)
    first, last, mean   the last hidden state's first and last row and the mean of its rows
    outputs             of a classifier: its num_labels outputs
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers
from transformers import AutoModel, AutoModelForSequenceClassification

SEED = 4711
# length, where the second segment begins
PROMPTS = [(1, None), (7, 3), (33, None), (64, 40), (100, 1)]

BERT = dict(type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=0,
            max_position_embeddings=112)
ROBERTA = dict(type_vocab_size=1, hidden_act="gelu", layer_norm_eps=1e-5, pad_token_id=1,
               max_position_embeddings=112)
SHAPE = dict(vocab_size=64, hidden_size=32, intermediate_size=56, num_hidden_layers=2,
             num_attention_heads=2)
DISTIL = dict(vocab_size=64, dim=32, hidden_dim=56, n_layers=2, n_heads=2, activation="gelu",
              max_position_embeddings=112, pad_token_id=0)

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
            gain = 1.6 if any(part in name for part in ("query", "key", "q_lin", "k_lin")) else 1
            noise = gain * noise / weight.shape[1]**0.5
        weight.data.copy_(noise)


def compute(model, ids, begin):
    arguments = {"input_ids": torch.tensor([ids])}
    if getattr(model.config, "type_vocab_size", 0) > 1 and begin is not None:
        arguments["token_type_ids"] = torch.tensor([[int(i >= begin) for i in range(len(ids))]])
    with torch.no_grad():
        out = model(**arguments, output_hidden_states=True)
    hidden = out.hidden_states[-1][0]
    assert hidden.dtype == torch.float64
    rounded = lambda values: [round(x, 10) for x in values.tolist()]
    golden = {"ids": ids, "second_segment_begin": begin, "first": rounded(hidden[0]),
              "last": rounded(hidden[-1]), "mean": rounded(hidden.mean(dim=0))}
    if "logits" in out:
        golden["outputs"] = rounded(out.logits[0])
    return golden


def make_model(folder, name, members, seed):
    cls = getattr(transformers, name)
    model = cls(cls.config_class(**members))
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    load = AutoModel if name.endswith("Model") else AutoModelForSequenceClassification
    model = load.from_pretrained(folder, attn_implementation="eager").eval().double()
    assert type(model) is cls
    prompts = []
    for length, begin in PROMPTS:
        ids = torch.randint(3, 64, (length,), generator=generator).tolist()
        prompts.append(compute(model, ids, begin))
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed,
              "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name)


def main():
    parser = argparse.ArgumentParser()
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "encoders"
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=default)
    out = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for i, (name, cls, members) in enumerate(MODELS):
        make_model(out / name, cls, members, SEED + i)


if __name__ == "__main__":
    main()
