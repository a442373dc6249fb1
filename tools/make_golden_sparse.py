#!/usr/bin/env python3
"""Make tiny random SPLADE models and record what sentence-transformers computes.

    .venv-dev/bin/python tools/make_golden_sparse.py [OUT_DIR]   (default: tests/data/sparse)

Writes OUT_DIR/NAME/: a model for masked tokens in HuggingFace layout, a tokenizer of letters, modules.json and the
folders that the library saves (or those of published files), and golden.json. It holds for each of its prompts `ids`
and the whole `vector`, computed from the files as written, loaded again, in float64; and for each of its texts the
`indices` and `values` of the library's own SparseEncoder, in float32.
"""
import json
import shutil
import string

import safetensors.torch
import torch
import transformers
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers import models as tokenizer_models

import make_golden_encoders as encoders
import make_golden_models as models

SEED = 3005
LENGTHS = [1, 2, 7, 40, 100]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["a", "the cat sat", "never ever again, not in a hundred years of rain and snow"]
MODERN = {**encoders.MODERN, "num_hidden_layers": 2, "local_attention": 24, "cls_token_id": 2, "sep_token_id": 3,
          "bos_token_id": 2, "eos_token_id": 3}
OLD_TYPES = "sentence_transformers.sparse_encoder.models."

# name, class, config members, SpladePooling's arguments, what is special about the files
MODELS = [
    # More ids than a ticket of columns; the types of modules that published files name.
    ("bert", "BertForMaskedLM", {**encoders.SHAPE, **encoders.BERT, "vocab_size": 530}, {}, "published"),
    ("bert-untied", "BertForMaskedLM", {**encoders.SHAPE, **encoders.BERT, "hidden_act": "relu", "tie_word_embeddings": False}, {}, ""),
    ("distilbert-documents", "DistilBertForMaskedLM", encoders.DISTIL, {"activation_function": "log1p_relu"}, "router"),
    ("roberta", "RobertaForMaskedLM", {**encoders.SHAPE, **encoders.ROBERTA}, {}, ""),
    ("xlm-roberta-sum", "XLMRobertaForMaskedLM", {**encoders.SHAPE, **encoders.ROBERTA}, {"pooling_strategy": "sum"}, ""),
    ("modernbert", "ModernBertForMaskedLM", MODERN, {}, ""),
    ("gte", "GteForMaskedLM", {**encoders.SHAPE, **encoders.GTE}, {}, ""),
    ("gte-published", "GteForMaskedLM", {**encoders.SHAPE, **encoders.GTE}, {"activation_function": "log1p_relu"}, "respelled"),
]


def write_tokenizer(folder, words=(), added=()):
    letters = string.ascii_lowercase
    pieces = [*SPECIAL, *letters, *("##" + letter for letter in letters), ",", *words]
    tokenizer = Tokenizer(tokenizer_models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in added])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=100, **names)
    fast.save_pretrained(folder)


def write_modules(folder, pooling, special):
    transformer = Transformer(str(folder), transformer_task="fill-mask")
    splade = SpladePooling(**pooling)
    modules = [transformer, splade]
    if special == "router":
        static = SparseStaticEmbedding(transformer.tokenizer, weight=torch.ones(len(transformer.tokenizer)))
        modules = [Router.for_query_document(query_modules=[static], document_modules=[transformer, splade])]
    SparseEncoder(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    if special == "router":
        use_published_router(folder)
    if special == "published":
        path = folder / "modules.json"
        entries = json.loads(path.read_text())
        for entry, kind in zip(entries, ("MLMTransformer", "SpladePooling"), strict=True):
            entry["type"] = OLD_TYPES + kind
        path.write_text(json.dumps(entries, indent=2))


def use_published_router(folder):
    """The model stands in the folder itself, so the name of its module is empty."""
    path = folder / "router_config.json"
    config = json.loads(path.read_text())
    name = config["structure"]["document"][0]
    shutil.rmtree(folder / name)
    config["structure"]["document"][0] = ""
    del config["types"][name]
    config["types"][""] = OLD_TYPES + "MLMTransformer"
    path.write_text(json.dumps(config, indent=4))


def compute(model, pooling, ids):
    modern = model.config.model_type in ("modernbert", "gte")
    with torch.no_grad(), models.float32_means_float64() if modern else models.contextlib.nullcontext():
        logits = model(input_ids=torch.tensor([ids])).logits
    assert logits.dtype == torch.float64
    features = {"token_embeddings": logits, "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
    vector = SpladePooling(**pooling).eval()(features)["sentence_embedding"][0]
    return {"ids": ids, "vector": [round(x, 9) for x in vector.tolist()]}


def encode_texts(folder):
    vectors = SparseEncoder(str(folder), device="cpu").encode_document(TEXTS, convert_to_tensor=True).coalesce()
    texts = []
    for i, text in enumerate(TEXTS):
        of_text = vectors.indices()[0] == i
        texts.append({"text": text, "indices": vectors.indices()[1][of_text].tolist(),
                      "values": [round(x, 7) for x in vectors.values()[of_text].tolist()]})
    return texts


def respell(folder, tensors):
    """The published names of GTE."""
    encoders.use_published_spelling(folder, tensors)
    path = folder / "model.safetensors"
    renamed = {name.replace("new.lm_head.", "lm_head.").replace("lm_head.layer_norm", "lm_head.norm"): tensor
               for name, tensor in safetensors.torch.load_file(path).items() if name != "new.lm_head.decoder.weight"}
    safetensors.torch.save_file(renamed, path, metadata={"format": "pt"})


def make_model(folder, name, members, pooling, special, seed):
    cls = getattr(transformers, name)
    model = cls(cls.config_class(**members))
    generator = torch.Generator().manual_seed(seed)
    encoders.randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    write_modules(folder, pooling, special)
    texts = encode_texts(folder)
    model = cls.from_pretrained(folder, attn_implementation="eager").eval().double()
    tensors = {key: weight.detach().float().clone().contiguous() for key, weight in model.named_parameters()}
    if model.config.model_type in ("modernbert", "gte"):
        encoders.give_double_ropes(model)
    vocab = model.config.vocab_size
    prompts = [compute(model, pooling, torch.randint(5, vocab, (length,), generator=generator).tolist())
               for length in LENGTHS]
    if special == "respelled":
        respell(folder, tensors)
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed, "prompts": prompts,
              "texts": texts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name)


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "sparse", SEED)
