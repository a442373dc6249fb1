#!/usr/bin/env python3
"""Make tiny random decoders of the further architectures and record what the reference computes on them.

    .venv-dev/bin/python tools/make_golden_decoders.py [OUT_DIR] [--only NAME]   (default: tests/data/models)

Writes OUT_DIR/NAME/ like tools/make_golden_models.py, whose format and float64 arithmetic it shares; OUT_DIR/README.md lists
the models. A config is written as published files spell it, where that differs from what the library writes today.
"""
import json
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


def old_gemma(config):
    """Gemma 3's spelling before transformers 5; what the library takes for granted is left out."""
    ropes = config.pop("rope_parameters")
    local, scaling = ropes["sliding_attention"], ropes["full_attention"]
    assert local["rope_type"] == "default"
    config["rope_local_base_freq"] = local["rope_theta"]
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = None if scaling["rope_type"] == "default" else scaling
    config["sliding_window_pattern"] = 6
    for key in ("layer_types", "attention_bias", "hidden_activation", "tie_word_embeddings", "rms_norm_eps"):
        config.pop(key, None)
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")


def first_gemma(config):
    """The spelling of Gemma 1's files, in which "gelu" is the one by tanh."""
    plain_rope(config)
    config.update(hidden_act="gelu", hidden_activation=None)


def second_gemma(config):
    plain_rope(config)
    config.update(hidden_act=config["hidden_activation"], cache_implementation="hybrid")


def multimodal(config):
    text = config["text_config"]
    old_gemma(text)
    for key in ("bos_token_id", "pad_token_id", "query_pre_attn_scalar", "_sliding_window_pattern"):
        text.pop(key, None)
    config["torch_dtype"] = config.pop("dtype")


def old_phi(config):
    part = config["rope_parameters"].pop("partial_rotary_factor", None)
    plain_rope(config)
    if part is not None:
        config["partial_rotary_factor"] = part
    if config["rope_scaling"]:  # the original context stands beside it
        config["rope_scaling"].pop("original_max_position_embeddings", None)
        config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")


def published_qwen35(config):
    """The members of published files that the library knows no longer; an interval in place of the layers' types."""
    del config["layer_types"]
    config.update(full_attention_interval=4, attn_output_gate=True, mamba_ssm_dtype="float32", mlp_only_layers=[],
                  mtp_num_hidden_layers=1)
    config["rope_parameters"].update(mrope_interleaved=True, mrope_section=[2, 1, 1])
    if "num_experts" in config:  # no layer has another MLP
        del config["intermediate_size"]


def published_next(config):
    """Qwen3-Next's spelling: an interval, and the rope's members beside the others."""
    old_phi(config)
    config["full_attention_interval"] = 4


def long_rope(**members):
    return {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.02, 1.1, 1.3, 1.7, 2.5],
            "long_factor": [1.1, 1.6, 2.5, 6.0, 13.0, 31.0], "partial_rotary_factor": 0.75, **members}


GEMMA_ROPES = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
               "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}}
# The square root of 96 is no number of few bits, so that its rounding shows.
GEMMA = dict(hidden_size=96, intermediate_size=80, head_dim=16, num_key_value_heads=1, sliding_window=24,
             query_pre_attn_scalar=24, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=GEMMA_ROPES)
GEMMA1 = {key: value for key, value in GEMMA.items() if key not in ("sliding_window", "query_pre_attn_scalar")}
GEMMA1["rope_parameters"] = ROPE
# Scores and logits are often beyond the caps.
GEMMA2 = {**GEMMA, "rope_parameters": ROPE, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0}
VISION = dict(model_type="siglip_vision_model", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
              num_attention_heads=2, image_size=28, patch_size=14)

QWEN35 = dict(num_hidden_layers=4, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
              linear_value_head_dim=32, rms_norm_eps=1e-6,
              rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25})
# Sizes that are no multiples of a panel of weights.
QWEN35_MOE = {**QWEN35, "num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
              "shared_expert_intermediate_size": 40}
QWEN35_VISION = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=64, patch_size=14,
                     num_position_embeddings=4)

# name, class, config members, options: dtype, lengths, spell (how config.json is rewritten)
MODELS = [
    ("mistral-window", "MistralForCausalLM",
     dict(sliding_window=24, max_position_embeddings=512, rope_parameters=ROPE), dict(lengths=LONG, spell=plain_rope)),
    ("mistral-window-bf16", "MistralForCausalLM", dict(sliding_window=9, head_dim=32, rope_parameters=ROPE),
     dict(dtype=BF16, spell=plain_rope)),
    ("qwen2-window", "Qwen2ForCausalLM",
     dict(use_sliding_window=True, sliding_window=40, max_window_layers=1, num_hidden_layers=3, tie_word_embeddings=True,
          rope_parameters=ROPE), dict(spell=plain_rope)),
    ("gemma3", "Gemma3ForCausalLM", {**GEMMA, "num_hidden_layers": 7, "max_position_embeddings": 512},
     dict(lengths=LONG, spell=old_gemma)),
    ("gemma3-bf16", "Gemma3ForCausalLM",
     {**GEMMA, "hidden_size": 64, "num_hidden_layers": 3, "head_dim": 32, "sliding_window": 40,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}, dict(dtype=BF16)),
    ("gemma3-multimodal", "Gemma3ForConditionalGeneration",
     dict(text_config={**BASE, **GEMMA, "num_hidden_layers": 6, "query_pre_attn_scalar": 256},
          vision_config=VISION, mm_tokens_per_image=1, image_token_index=0, boi_token_index=1,
          eoi_token_index=2, tie_word_embeddings=True), dict(spell=multimodal)),
    ("phi3", "Phi3ForCausalLM", dict(sliding_window=40, intermediate_size=100, rope_parameters=ROPE), dict(spell=old_phi)),
    ("phi3-bf16", "Phi3ForCausalLM",
     dict(hidden_size=128, tie_word_embeddings=True, rope_parameters={**ROPE, "partial_rotary_factor": 0.5}),
     dict(dtype=BF16)),
    # Prompts beyond the original context, and a model whose context is the original one.
    ("phi3-longrope", "Phi3ForCausalLM",
     dict(original_max_position_embeddings=64, rope_parameters=long_rope()), dict(lengths=[70, 150], spell=old_phi)),
    ("phi3-longrope-short", "Phi3ForCausalLM",
     dict(original_max_position_embeddings=64, max_position_embeddings=64, rope_parameters=long_rope(factor=4.0)),
     dict(lengths=[1, 7, 40])),
    ("olmo2", "Olmo2ForCausalLM", dict(rope_parameters=ROPE), dict(spell=plain_rope)),
    ("olmo2-bf16", "Olmo2ForCausalLM", dict(hidden_size=128, attention_bias=True, rope_parameters=ROPE), dict(dtype=BF16)),
    ("olmo3", "Olmo3ForCausalLM",
     dict(num_hidden_layers=4, sliding_window=24,
          rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 5e5},
                           "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5e5,
                                              "original_max_position_embeddings": 64}}), {}),
    ("granite", "GraniteForCausalLM",
     dict(embedding_multiplier=3.0, attention_multiplier=0.17, residual_multiplier=0.22, logits_scaling=0.6, mlp_bias=True,
          rope_parameters=ROPE), dict(spell=plain_rope)),
    ("granite-bf16", "GraniteForCausalLM",
     dict(embedding_multiplier=0.6, attention_multiplier=0.3, residual_multiplier=0.7, logits_scaling=0.75,
          tie_word_embeddings=True, rope_parameters=ROPE), dict(dtype=BF16)),
    ("smollm3", "SmolLM3ForCausalLM",
     dict(num_hidden_layers=4, tie_word_embeddings=True, no_rope_layers=[1, 0, 1, 0], rope_parameters=ROPE),
     dict(spell=plain_rope)),
    ("smollm3-bf16", "SmolLM3ForCausalLM",
     dict(num_hidden_layers=4, tie_word_embeddings=True, rope_parameters=ROPE), dict(dtype=BF16)),
    # Windows of the convolution and states beyond a chunk of the reference's scan, 64 tokens.
    ("qwen3.5", "Qwen3_5ForCausalLM", {**QWEN35, "max_position_embeddings": 512},
     dict(lengths=[1, 2, 3, 7, 40, 300], spell=published_qwen35)),
    ("qwen3.5-bf16", "Qwen3_5ForCausalLM",
     {**QWEN35, "hidden_size": 128, "tie_word_embeddings": True, "linear_num_key_heads": 1, "linear_num_value_heads": 2,
      "linear_key_head_dim": 32, "linear_value_head_dim": 64, "num_hidden_layers": 3,
      "layer_types": ["linear_attention", "full_attention", "linear_attention"]}, dict(dtype=BF16)),
    ("qwen3.5-multimodal", "Qwen3_5ForConditionalGeneration",
     dict(text_config={**BASE, **QWEN35}, vision_config=QWEN35_VISION, image_token_id=0, video_token_id=1,
          vision_start_token_id=2, vision_end_token_id=3, tie_word_embeddings=False), {}),
    ("qwen3.5-moe", "Qwen3_5MoeForCausalLM", QWEN35_MOE, dict(spell=published_qwen35)),
    # Every expert for every token: no rounding decides between two.
    ("qwen3.5-moe-bf16", "Qwen3_5MoeForCausalLM",
     {**QWEN35_MOE, "hidden_size": 128, "tie_word_embeddings": True, "num_experts": 4, "num_experts_per_tok": 4,
      "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}, dict(dtype=BF16)),
    # As published: a tensor has the matrices of all experts.
    ("qwen3.5-moe-multimodal", "Qwen3_5MoeForConditionalGeneration",
     dict(text_config={**BASE, **QWEN35_MOE}, vision_config=QWEN35_VISION, image_token_id=0, video_token_id=1,
          vision_start_token_id=2, vision_end_token_id=3, tie_word_embeddings=False), dict(fused_experts=True, spell=lambda config: config["text_config"].pop("intermediate_size"))),
    ("qwen2-moe", "Qwen2MoeForCausalLM",
     dict(num_hidden_layers=3, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24,
          shared_expert_intermediate_size=56, mlp_only_layers=[1], rope_parameters=ROPE), dict(spell=plain_rope)),
    ("olmoe", "OlmoeForCausalLM",
     dict(intermediate_size=40, num_experts=8, num_experts_per_tok=3, rope_parameters=ROPE), dict(spell=plain_rope)),
    ("mixtral", "MixtralForCausalLM",
     dict(intermediate_size=56, num_local_experts=5, num_experts_per_tok=2, rope_parameters=ROPE), dict(spell=plain_rope)),
    ("mixtral-bf16", "MixtralForCausalLM",
     dict(hidden_size=128, head_dim=32, intermediate_size=56, num_local_experts=3, num_experts_per_tok=3,
          tie_word_embeddings=True, rope_parameters=ROPE), dict(dtype=BF16, fused_experts=True)),
    ("qwen3-next", "Qwen3NextForCausalLM", {**QWEN35_MOE, "num_hidden_layers": 5, "mlp_only_layers": [1]},
     dict(spell=published_next)),
    ("gemma", "GemmaForCausalLM", GEMMA1, dict(spell=first_gemma)),
    ("gemma-bf16", "GemmaForCausalLM", {**GEMMA1, "hidden_size": 64, "num_key_value_heads": 4}, dict(dtype=BF16)),
    ("gemma2", "Gemma2ForCausalLM", {**GEMMA2, "num_hidden_layers": 5, "max_position_embeddings": 512},
     dict(lengths=LONG, spell=second_gemma)),
    ("gemma2-bf16", "Gemma2ForCausalLM",
     {**GEMMA2, "hidden_size": 64, "num_hidden_layers": 3, "head_dim": 32, "sliding_window": 40}, dict(dtype=BF16)),
    # As published; no score or logit of a random model is near these caps.
    ("gemma2-large-caps", "Gemma2ForCausalLM",
     {**GEMMA2, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256}, {}),
]


class Body:
    """A model with the config of its text part, for models.randomize."""

    def __init__(self, model):
        self.config, self.named_parameters = model.config.get_text_config(), model.named_parameters


def randomize(model, generator):
    models.randomize(Body(model), generator)
    if model.config.model_type.startswith(("qwen3_5", "qwen3_next")):
        for name, weight in model.named_parameters():
            if "norm" in name and not name.endswith("linear_attn.norm.weight"):
                weight.data.sub_(1)  # these norms multiply by one more than their weight
            elif name.endswith("A_log"):
                weight.data.sub_(2)  # states last for some ten tokens
    if not model.config.model_type.startswith("gemma"):
        return
    # Its norms multiply by one more than their weight. The scaled embedding would outweigh all layers; the last norm makes
    # up for a smaller one.
    for name, weight in model.named_parameters():
        if "embed_tokens" in name:
            weight.data.mul_(0.25)
        elif name.endswith(("language_model.norm.weight", "model.norm.weight")):
            weight.data.mul_(4).sub_(1)
        elif "norm" in name:
            weight.data.sub_(1)


def load_double(folder, cls):
    model = cls.from_pretrained(folder, dtype="auto", attn_implementation="eager",
                                experts_implementation="eager").eval().double()
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
    config = cls.config_class(**(members if "text_config" in members else {**BASE, **members}))
    config.dtype = dtype
    model = cls(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, save_original_format=not options.get("fused_experts", False))
    written = json.loads((folder / "config.json").read_text())
    options.get("spell", lambda config: None)(written)
    (folder / "config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    reference = load_double(folder, cls)
    models.write_golden(folder, reference, dtype, options.get("lengths", LENGTHS), seed, generator)


if __name__ == "__main__":
    models.make_all(MODELS, make_model, "models", SEED)
