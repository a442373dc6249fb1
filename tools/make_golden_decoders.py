#!/usr/bin/env python3
"""Make tiny random decoders of the further architectures and record what the reference computes on them.

    .venv-dev/bin/python tools/make_golden_decoders.py [OUT_DIR] [--only NAME]   (default: tests/data/models)

Writes OUT_DIR/NAME/ like tools/make_golden_models.py, whose format and float64 arithmetic it shares; OUT_DIR/README.md lists
the models. A config is written as published files spell it, where that differs from what the library writes today.
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers

import make_golden_models as models
from make_golden_models import BF16, F32

SEED = 31000
BASE = dict(vocab_size=128, hidden_size=64, intermediate_size=112, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=2, pad_token_id=0)
LENGTHS = [1, 7, 40, 100]
LONG = [7, 40, 300]  # beyond a step of keys of every kernel; the windows are far shorter
ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def plain_rope(config):
    """rope_theta and rope_scaling in place of rope_parameters."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")


# name, class, config members, options: dtype, lengths, spell (how config.json is rewritten)
MODELS = [
    ("mistral-window", "MistralForCausalLM",
     dict(sliding_window=24, max_position_embeddings=512, rope_parameters=ROPE), dict(lengths=LONG, spell=plain_rope)),
    ("mistral-window-bf16", "MistralForCausalLM", dict(sliding_window=9, head_dim=32, rope_parameters=ROPE),
     dict(dtype=BF16, spell=plain_rope)),
    ("qwen2-window", "Qwen2ForCausalLM",
     dict(use_sliding_window=True, sliding_window=40, max_window_layers=1, num_hidden_layers=3, tie_word_embeddings=True,
          rope_parameters=ROPE), dict(spell=plain_rope)),
]


def randomize(model, generator):
    models.randomize(model, generator)
    if model.config.model_type.startswith("gemma"):  # its norms multiply by one more than their weight
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.data.sub_(1)


def load_double(folder, cls):
    model = cls.from_pretrained(folder, dtype="auto", attn_implementation="eager").eval().double()
    assert type(model) is cls
    for module in list(model.modules()):
        if type(module).__name__.endswith("RotaryEmbedding"):
            with models.float32_means_float64():
                module.__init__(config=module.config)
            assert all(b.dtype == torch.float64 for name, b in module.named_buffers() if "inv_freq" in name)
    return model


def make_model(folder, cls_name, members, options, seed):
    dtype = options.get("dtype", F32)
    cls = getattr(transformers, cls_name)
    config = cls.config_class(**{**BASE, **members})
    config.dtype = dtype
    model = cls(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    options.get("spell", lambda config: None)(written)
    (folder / "config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    reference = load_double(folder, cls)
    low = dtype != F32
    prompts = [models.golden_prompt(reference, length, 16 if low else 24, 0.2 if low else 0.05, generator)
               for length in options.get("lengths", LENGTHS)]
    vocab = reference.get_input_embeddings().weight.shape[0]
    golden = {"file_dtype": str(dtype).removeprefix("torch."), "computed_in": "float64", "vocab_size": vocab,
              "seed": seed, "torch": torch.__version__, "transformers": transformers.__version__,
              "min_top2_gap": min(p["min_top2_gap"] for p in prompts), "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    spread = torch.tensor([p["last_logprobs"] for p in prompts]).std(dim=1).mean().item()
    print(f"{folder.name}: {sum(p.numel() for p in model.parameters())} parameters, "
          f"std of log-probabilities {spread:.2f}, closest decision {golden['min_top2_gap']}")


def main():
    parser = argparse.ArgumentParser()
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--only", default="", help="the models whose names begin so")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for i, (name, *rest) in enumerate(MODELS):
        if name.startswith(args.only):
            make_model(args.out / name, *rest, SEED + i)


if __name__ == "__main__":
    main()
