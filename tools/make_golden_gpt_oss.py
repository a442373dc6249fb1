#!/usr/bin/env python3
"""Make tiny random models of gpt-oss and record what the reference computes on them.

    .venv-dev/bin/python tools/make_golden_gpt_oss.py [OUT_DIR] [--only NAME]   (default: tests/data/models)

Writes OUT_DIR/NAME/ like tools/make_golden_models.py, whose format and float64 arithmetic it shares; OUT_DIR/README.md lists
the models. gpt-oss-mxfp4 has its experts as published files do; the reference reads the same numbers in bf16.
"""
import json
import shutil

import safetensors.torch
import torch
import transformers

import make_golden_models as models
from make_golden_models import BF16, F32

SEED = 47000
ROPE = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 64}
BASE = dict(vocab_size=128, hidden_size=64, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-5, num_local_experts=5,
            num_experts_per_tok=2, sliding_window=24, bos_token_id=1, eos_token_id=2, pad_token_id=0, rope_parameters=ROPE)
LENGTHS = [1, 7, 40, 300]  # beyond the window and a step of keys of every kernel
MXFP4 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6])

# name, config members, options. In bf16 every expert serves every token, so that no rounding decides between two.
MODELS = [
    ("gpt-oss", {}, dict(spell=True)),
    ("gpt-oss-bf16", dict(num_local_experts=3, num_experts_per_tok=3, num_hidden_layers=2), dict(dtype=BF16)),
    ("gpt-oss-mxfp4", dict(num_local_experts=3, num_experts_per_tok=3, num_hidden_layers=2, intermediate_size=64),
     dict(dtype=BF16, mxfp4=True, spell=True)),
]


def published(config):
    """config.json as in the published models, before transformers 5."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    config["experts_per_token"] = config["num_experts_per_tok"]
    config["initial_context_length"] = rope["original_max_position_embeddings"]
    config.pop("swiglu_alpha", None)
    config["torch_dtype"] = config.pop("dtype")


def randomize(model, generator):
    models.randomize(model, generator)
    for name, weight in model.named_parameters():
        if name.endswith("sinks"):
            weight.data.copy_((1 + 1.5 * torch.randn(weight.shape, generator=generator)).to(BF16))
        elif name.endswith("gate_up_proj"):
            weight.data.mul_(4)  # so that the limits of gate and up matter
        elif name.endswith("down_proj"):
            weight.data.mul_(0.5)


def random_mxfp4(shape, gain, generator):
    """Codes and scales [rows, k] of random numbers near the normal distribution times gain, and the numbers."""
    codes = (torch.randn(shape, generator=generator) * 2.2).unsqueeze(-1).sub(MXFP4).abs().argmin(-1).to(torch.uint8)
    exponents = torch.randint(-2, 2, (*shape[:-1], shape[-1] // 32), generator=generator)
    exponents += int(torch.log2(torch.tensor(gain)).round())
    numbers = MXFP4[codes.long()] * torch.exp2(exponents.float()).repeat_interleave(32, dim=-1)
    pairs = codes.view(*shape[:-1], shape[-1] // 32, 16, 2)
    return pairs[..., 0] | pairs[..., 1] << 4, (exponents + 127).to(torch.uint8), numbers


def use_mxfp4(folder, model, generator):
    """Gives the experts of the model numbers of MXFP4; returns a function that writes them so in the folder's file."""
    packed = {}
    for name, weight in model.named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        experts, k, rows = weight.shape
        gain = (2.0 if "gate_up" in name else 0.5) / k**0.5
        packed[name + "_blocks"], packed[name + "_scales"], numbers = random_mxfp4((experts, rows, k), gain, generator)
        weight.data.copy_(numbers.transpose(1, 2))

    def write():
        path = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        for name in packed:
            tensors.pop(name.rsplit("_", 1)[0], None)
        safetensors.torch.save_file({**tensors, **packed}, path, {"format": "pt"})

    return write


def load_double(folder):
    model = transformers.GptOssForCausalLM.from_pretrained(
        folder, dtype="auto", attn_implementation="eager", experts_implementation="eager").eval().double()
    with models.float32_means_float64():
        model.model.rotary_emb.__init__(config=model.config)
    assert model.model.rotary_emb.inv_freq.dtype == torch.float64
    return model


def make_model(folder, members, options, seed):
    dtype = options.get("dtype", F32)
    config = transformers.GptOssConfig(**{**BASE, **members})
    config.dtype = dtype
    model = transformers.GptOssForCausalLM(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    write_packed = use_mxfp4(folder, model, generator) if options.get("mxfp4") else None
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    reference = load_double(folder)
    written = json.loads((folder / "config.json").read_text())
    if options.get("spell"):
        published(written)
    if write_packed:
        write_packed()
        written["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    (folder / "config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    models.write_golden(folder, reference, dtype, LENGTHS, seed, generator)


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "models", SEED)
