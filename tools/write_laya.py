#!/usr/bin/env python3
"""Write a Laya model of random weights, with the package `laya` itself.

    python tools/write_laya.py OUT_DIR [large|base|tiny]

The shapes are those of ModernBERT-large and -base, and one for trying things out. The tokenizer is
tests/data/tokenizers/modernbert-style.
"""
import argparse
import pathlib

import torch
import transformers
from laya import common, train

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SPECIAL = dict(cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]")
SHAPES = {
    "large": dict(hidden_size=1024, intermediate_size=2624, num_hidden_layers=28, num_attention_heads=16),
    "base": dict(hidden_size=768, intermediate_size=1152, num_hidden_layers=22, num_attention_heads=12),
    "tiny": dict(hidden_size=128, intermediate_size=192, num_hidden_layers=4, num_attention_heads=2),
}
COMMON = dict(vocab_size=50368, max_position_embeddings=8192, local_attention=128, global_attn_every_n_layers=3,
              norm_eps=1e-5, hidden_activation="gelu", pad_token_id=50283)
CONFIG = {"encoder": "random", "head_layers": 2, "act_costs": {"escalate": 0.2}, "max_len": 512, "head_max_len": 192,
          "temperature": [1.0, 1.0, 1.0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("shape", nargs="?", choices=SHAPES, default="large")
    args = parser.parse_args()
    torch.manual_seed(1)
    encoder = transformers.AutoModel.from_config(transformers.ModernBertConfig(**COMMON, **SHAPES[args.shape]))
    model = common.DecisionModel(encoder, CONFIG["head_layers"], len(CONFIG["act_costs"]) + 1)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(DATA / "tokenizers/modernbert-style/tokenizer.json"), **SPECIAL)
    train.save_checkpoint(model, tokenizer, CONFIG, str(args.out))


if __name__ == "__main__":
    main()
