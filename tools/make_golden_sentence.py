#!/usr/bin/env python3
"""Make tiny random embedding models with Dense modules and record what sentence-transformers computes.

    .venv-dev/bin/python tools/make_golden_sentence.py [OUT_DIR]   (default: tests/data/sentence)

Writes OUT_DIR/NAME/: a transformer in HuggingFace layout, 1_Pooling, 2_Dense, ... and modules.json as the library
saves them, and golden.json: for each of its prompts `ids` and the `embedding`, computed from the files as written,
loaded again, in float64.
"""
import json
import shutil

import torch
import transformers
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from sentence_transformers.util import fullname
from torch import nn

import make_golden_decoders as decoders
import make_golden_encoders as encoders
import make_golden_models as models

SEED = 977
LENGTHS = [1, 7, 40, 100]
QWEN3 = dict(vocab_size=128, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=1,
             eos_token_id=2)
# EmbeddingGemma: tokens see both sides; the window counts both.
GEMMA = {**decoders.BASE, **decoders.GEMMA, "num_hidden_layers": 6, "use_bidirectional_attention": True}

# name, class, config members, pooling, [(out features, activation, bias)], normalize
MODELS = [
    ("bert-two-dense", "BertModel", {**encoders.SHAPE, **encoders.BERT, "num_hidden_layers": 1}, "mean",
     [(80, nn.Tanh(), True), (24, nn.Identity(), False)], True),
    ("qwen3-dense", "Qwen3Model", QWEN3, "lasttoken", [(40, nn.Identity(), True)], False),
    ("embedding-gemma", "Gemma3TextModel", GEMMA, "mean", [(80, nn.Identity(), False), (24, nn.Identity(), False)], True),
]


def make_transformer(folder, name, members, generator):
    cls = getattr(transformers, name)
    config = cls.config_class(**members)
    config.dtype = torch.float32
    model = cls(config)
    kind = encoders if name.startswith("Bert") else decoders
    kind.randomize(model, generator)
    model.save_pretrained(folder)
    if name.startswith("Bert"):
        return cls.from_pretrained(folder, attn_implementation="eager").eval().double()
    return decoders.load_double(folder, cls)


def make_modules(folder, hidden, pooling, dense, normalize, generator):
    modules = [Pooling(hidden, pooling_mode=pooling)]
    width = hidden
    for out, activation, bias in dense:
        module = Dense(width, out, bias=bias, activation_function=activation)
        for weight in module.parameters():
            weight.data.copy_(torch.randn(weight.shape, generator=generator) / width**0.5)
        modules.append(module)
        width = out
    if normalize:
        modules.append(Normalize())
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    loaded = []
    for i, module in enumerate(modules, 1):
        path = f"{i}_{type(module).__name__}"
        (folder / path).mkdir()
        module.save(str(folder / path))
        listed.append({"idx": i, "name": str(i), "path": path, "type": fullname(module)})
        loaded.append(type(module).load(str(folder / path)).eval().double())
    (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    return loaded


def embed(transformer, modules, ids):
    with torch.no_grad(), models.float32_means_float64():
        hidden = transformer(input_ids=torch.tensor([ids])).last_hidden_state
        assert hidden.dtype == torch.float64
        features = {"token_embeddings": hidden, "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
        for module in modules:
            features = module(features)
    assert features["sentence_embedding"].dtype == torch.float64
    return features["sentence_embedding"][0].tolist()


def make_model(folder, cls, members, pooling, dense, normalize, seed):
    generator = torch.Generator().manual_seed(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    transformer = make_transformer(folder, cls, members, generator)
    modules = make_modules(folder, transformer.config.hidden_size, pooling, dense, normalize, generator)
    prompts = []
    for length in LENGTHS:
        ids = torch.randint(3, 64, (length,), generator=generator).tolist()
        prompts.append({"ids": ids, "embedding": embed(transformer, modules, ids)})
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed, "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(folder.name, len(prompts[0]["embedding"]))


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "sentence", SEED)
