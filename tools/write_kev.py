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
import sys

import torch

from serving import SKEIN

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # qwen35_gguf, which the tests have too
TOKENIZER = ROOT / "tests/data/kev/qwen3-adapter/base"
HEAD_WIDTH = 256


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("shape", nargs="?", default="qwen3.5-0.8b")
    parser.add_argument("--gguf", nargs=2, metavar=("FILE", "FORM"))
    args = parser.parse_args()
    write_model(args.out, args.shape)
    if args.gguf:
        import gguf  # only a file needs the package
        from qwen35_gguf import write_kev

        write_kev(args.out, pathlib.Path(args.gguf[0]), gguf.GGMLQuantizationType[args.gguf[1].upper()])


if __name__ == "__main__":
    main()
