#!/usr/bin/env python3
"""Make tiny random ColBERT models and record what sentence-transformers computes.

    .venv-dev/bin/python tools/make_golden_colbert.py [OUT_DIR]   (default: tests/data/colbert)

Writes OUT_DIR/NAME/ in the layouts of published files: Stanford's (HF_ColBERT, artifact.metadata, the projection in the
model's own file), PyLate's (a Dense module, markers and lengths in config_sentence_transformers.json) and
sentence-transformers' own. golden.json holds, as its MultiVectorEncoder computes them from the files in float32, the
vectors of the tokens of QUERIES and DOCUMENTS that take part in the interaction, and the scores [queries, documents].
"""
import json
import shutil
import string

import safetensors.torch
import torch
import transformers
from sentence_transformers import MultiVectorEncoder

import make_golden_encoders as encoders
import make_golden_models as models
import make_golden_sparse as sparse

SEED = 612
QUERIES = ["the cat", "why is it so cold", "a b c d e f g h i j k l m n o p q r s t u v w x y z and then some more, for it must be cut"]
DOCUMENTS = ["the cat, which sat", "rain, rain, go away, come again another day", "z",
             "a rather long text that goes on and on until it has to be cut as it is longer than the model wants it to be, is it not"]
WIDTH = 12
MODERN = {**sparse.MODERN, "local_attention": 128}

# name, class, config members, layout, the files' settings
MODELS = [
    ("bert-stanford", "BertModel", {**encoders.SHAPE, **encoders.BERT}, "stanford",
     {"query_maxlen": 32, "doc_maxlen": 60, "dim": WIDTH, "mask_punctuation": True, "attend_to_mask_tokens": False,
      "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_token": "[Q]", "doc_token": "[D]"}),
    ("modernbert-pylate", "ModernBertModel", MODERN, "pylate",
     {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 32, "document_length": 80,
      "attend_to_expansion_tokens": False, "do_query_expansion": True, "skiplist_words": list(string.punctuation),
      "similarity_fn_name": "MaxSim", "prompts": {}, "default_prompt_name": None}),
    ("bert-pylate-attends", "BertModel", {**encoders.SHAPE, **encoders.BERT}, "pylate",
     {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 40, "document_length": 90,
      "attend_to_expansion_tokens": True, "do_query_expansion": True, "skiplist_words": [","]}),
    # As earlier versions of PyLate wrote it, without a type.
    ("roberta-pylate-plain", "RobertaModel", {**encoders.SHAPE, **encoders.ROBERTA}, "pylate",
     {"query_prefix": "", "document_prefix": "", "query_length": 24, "document_length": 50,
      "do_query_expansion": False, "skiplist_words": []}),
    ("bert-multi-vector", "BertModel", {**encoders.SHAPE, **encoders.BERT}, "library", {}),
]


def write_pylate(folder, settings, projection):
    transformer = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    dense = {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}
    (folder / "modules.json").write_text(json.dumps([transformer, dense], indent=2))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings, indent=2))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 99, "do_lower_case": False}))
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense/config.json").write_text(json.dumps(
        {"in_features": projection.shape[1], "out_features": WIDTH, "bias": False,
         "activation_function": "torch.nn.modules.linear.Identity"}))
    safetensors.torch.save_file({"linear.weight": projection}, folder / "1_Dense/model.safetensors")


def write_stanford(folder, settings, projection):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": ["HF_ColBERT"]}, indent=2))
    path = folder / "model.safetensors"
    tensors = {"bert." + name: tensor for name, tensor in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file({**tensors, "linear.weight": projection}, path, metadata={"format": "pt"})
    (folder / "artifact.metadata").write_text(json.dumps(settings, indent=4))


def write_library(folder, projection):
    """As the library saves a model that it has made of a bare one."""
    model = MultiVectorEncoder(str(folder), device="cpu")
    model[1] = type(model[1])(in_features=projection.shape[1], out_features=WIDTH, bias=False,
                              activation_function=torch.nn.Identity(), init_weight=projection, module_input_name="token_embeddings")
    model[0].query_expansion = {"strategy": "min", "attend": False, "length": 20}
    model[0].document_length = 70
    model.prompts = {"query": "[Q] ", "document": "[D] "}
    model[2].skiplist_words = [",", "."]
    model.save(str(folder), create_model_card=False)


def make_model(folder, name, members, layout, settings, seed):
    cls = getattr(transformers, name)
    model = cls(cls.config_class(**members))
    generator = torch.Generator().manual_seed(seed)
    encoders.randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    stanford = layout == "stanford"
    sparse.write_tokenizer(folder, words=["[unused0]", "[unused1]"] if stanford else (), added=() if stanford else ["[Q] ", "[D] "])
    projection = torch.randn(WIDTH, members["hidden_size"], generator=generator) / members["hidden_size"]**0.5
    if layout == "stanford":
        write_stanford(folder, settings, projection)
    elif layout == "pylate":
        write_pylate(folder, settings, projection)
    else:
        write_library(folder, projection)
    reference = MultiVectorEncoder(str(folder), device="cpu")
    queries = reference.encode_query(QUERIES)
    documents = reference.encode_document(DOCUMENTS)
    scores = reference.similarity(queries, documents)
    rounded = lambda vectors: [[round(x, 7) for x in vector] for vector in vectors.tolist()]
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed,
              "queries": [{"text": text, "vectors": rounded(vectors)} for text, vectors in zip(QUERIES, queries, strict=True)],
              "documents": [{"text": text, "vectors": rounded(vectors)} for text, vectors in zip(DOCUMENTS, documents, strict=True)],
              "scores": rounded(scores)}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name, [len(q) for q in queries], [len(d) for d in documents])


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "colbert", SEED)
