#!/usr/bin/env python3
"""Make tiny random ModernBERT models to be served, and record what the reference answers.

    .venv-dev/bin/python tools/make_golden_modernbert.py [OUT_DIR]   (default: tests/data/modernbert)

Writes OUT_DIR/NAME/ for an embedding model (mmBERT's kind, with sentence-transformers' files), a
classifier and a reranker. Their tokenizers are tests/data/tokenizers/mmbert-style and
modernbert-style. golden.json names the tokenizer and holds, for each of its inputs, `text` (and
`pair`), the token ids and the `embedding` or the `outputs` of the head, computed from the files as
written, loaded again, in float64.
"""
import json
import pathlib
import shutil

import tokenizers
import torch
import transformers

import make_golden_encoders as encoders
import make_golden_models as models
import make_golden_sentence as sentence

SEED = 1213
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SHAPE = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=4, num_attention_heads=1,
             max_position_embeddings=512, local_attention=16, hidden_activation="gelu", norm_eps=1e-5)
LABELS = ["calm", "angry", "glad"]
EMBEDDING, CLASSIFIER = "ModernBertModel", "ModernBertForSequenceClassification"

# name, class, tokenizer, config
MODELS = [
    ("embedding", EMBEDDING, "mmbert-style", dict(vocab_size=1536, pad_token_id=0)),
    ("classifier", CLASSIFIER, "modernbert-style",
     dict(vocab_size=960, pad_token_id=0, classifier_pooling="mean", num_labels=len(LABELS),
          id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)})),
    ("reranker", CLASSIFIER, "modernbert-style",
     dict(vocab_size=960, pad_token_id=0, classifier_pooling="cls", num_labels=1)),
]
TEXTS = [
    "a",
    "Where is the book?",
    "Straße naïve café: 東京, Привет мир!",
    "The long way home was more than two hours by water. " * 12,  # beyond the window of local layers
    "def f(x):\n    return  x",
]
QUERY = "How do I find my way home?"


def load(folder, cls):
    loader = transformers.AutoModel if cls == EMBEDDING else transformers.AutoModelForSequenceClassification
    model = loader.from_pretrained(folder, attn_implementation="eager").eval().double()
    encoders.give_double_ropes(model)
    return model


def read(model, modules, ids):
    arguments = {"input_ids": torch.tensor([ids])}
    with torch.no_grad(), models.float32_means_float64():
        if not modules:
            return {"outputs": model(**arguments).logits[0].tolist()}
        features = {"token_embeddings": model(**arguments).last_hidden_state,
                    "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
        for module in modules:
            features = module(features)
    assert features["sentence_embedding"].dtype == torch.float64
    return {"embedding": features["sentence_embedding"][0].tolist()}


def make_model(folder, cls, tokenizer_name, members, seed):
    generator = torch.Generator().manual_seed(seed)
    config = transformers.ModernBertConfig(**SHAPE, **members)
    model = getattr(transformers, cls)(config)
    encoders.randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    modules = []
    if cls == EMBEDDING:
        modules = sentence.make_modules(folder, config.hidden_size, "mean", [], True, generator)
    model = load(folder, cls)
    tokenizer = tokenizers.Tokenizer.from_file(str(DATA / "tokenizers" / tokenizer_name / "tokenizer.json"))
    rows = []
    for text in TEXTS:
        pair = text if folder.name == "reranker" else None
        first = QUERY if pair else text
        ids = tokenizer.encode(first, pair).ids
        assert max(ids) < config.vocab_size
        rows.append({"text": first, "pair": pair, "ids": ids, **read(model, modules, ids)})
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed,
              "tokenizer": tokenizer_name, "rows": rows}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name, [len(row["ids"]) for row in rows])


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "modernbert", SEED)
