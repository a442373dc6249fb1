#!/usr/bin/env python3
"""Make tiny random models of every architecture and record what the reference computes on them.

    python3 -m venv .venv-dev && .venv-dev/bin/pip install -r tools/requirements-dev.txt
    .venv-dev/bin/python tools/make_golden_models.py [OUT_DIR]     (default: tests/data)

Writes OUT_DIR/models/NAME/ and OUT_DIR/heads/NAME/ in HuggingFace layout with a golden.json each,
and OUT_DIR/rope.json; the formats are described in tests/data/models/README.md. The goldens are computed by `transformers` from
the files as written, loaded again, in float64 throughout: where its code asks for float32 (norms,
rope, softmax) it is given float64 instead.
"""
import argparse
import contextlib
import json
import pathlib
import shutil

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

SEED = 20260
PROMPT_LENGTHS = [1, 7, 40, 100]  # scaled ropes have original_max_position_embeddings 32
TOP = 5

LLAMA, MISTRAL = "LlamaForCausalLM", "MistralForCausalLM"
QWEN2, QWEN3 = "Qwen2ForCausalLM", "Qwen3ForCausalLM"
QWEN3_MOE = "Qwen3MoeForCausalLM"
CONFIGS = {QWEN3_MOE: transformers.Qwen3MoeConfig,
           LLAMA: transformers.LlamaConfig, MISTRAL: transformers.MistralConfig,
           QWEN2: transformers.Qwen2Config, QWEN3: transformers.Qwen3Config}
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16

# name, architecture, config members, rope, options. `rope` is written in the newer spelling
# (rope_parameters) or, with old=True, as rope_theta and rope_scaling.
MODELS = [
    ("llama-default", LLAMA, {}, {"rope_type": "default", "rope_theta": 10000.0}, dict(old=True)),
    ("llama-llama3", LLAMA, {},
     {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 32}, dict(old=True)),
    ("llama-linear", LLAMA,
     dict(hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=72,
          vocab_size=101),
     {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
     dict(old=True, type_key="type")),
    ("llama-yarn", LLAMA, {},
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
      "original_max_position_embeddings": 32}, {}),
    ("llama-yarn-explicit", LLAMA, {},
     {"rope_type": "yarn", "rope_theta": 50000.0, "factor": 8.0, "attention_factor": 1.25,
      "beta_fast": 8.0, "beta_slow": 2.0, "truncate": False,
      "original_max_position_embeddings": 32}, dict(old=True)),
    ("llama-biases", LLAMA, dict(attention_bias=True, mlp_bias=True),
     {"rope_type": "default", "rope_theta": 10000.0}, {}),
    ("llama-head-dim", LLAMA, dict(head_dim=24, num_key_value_heads=4),
     {"rope_type": "default", "rope_theta": 500000.0}, {}),
    ("llama-sharded", LLAMA, dict(tie_word_embeddings=True),
     {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
     dict(max_shard_size="100KB")),
    ("llama-f16", LLAMA, {}, {"rope_type": "default", "rope_theta": 10000.0},
     dict(old=True, dtype=F16)),
    ("mistral", MISTRAL, dict(sliding_window=None),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(old=True)),
    ("mistral-head-dim", MISTRAL, dict(sliding_window=None, head_dim=32),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(dtype=BF16)),
    ("qwen2-tied", QWEN2, dict(tie_word_embeddings=True, use_sliding_window=False),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(old=True, eos=[2, 5])),
    ("qwen2-yarn", QWEN2, dict(use_sliding_window=False),
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
      "original_max_position_embeddings": 32}, dict(old=True)),
    ("qwen3-tied", QWEN3, dict(tie_word_embeddings=True, head_dim=16, num_attention_heads=6),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(old=True)),
    ("qwen3", QWEN3, dict(head_dim=32), {"rope_type": "default", "rope_theta": 1000000.0}, {}),
    ("qwen3-bf16", QWEN3, dict(tie_word_embeddings=True, head_dim=32),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(old=True, dtype=BF16, eos=[2, 5])),
    ("qwen3-moe", QWEN3_MOE,
     dict(head_dim=16, num_hidden_layers=3, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
          norm_topk_prob=True, mlp_only_layers=[1]),
     {"rope_type": "default", "rope_theta": 1000000.0}, dict(old=True)),
    # Every expert for every token: no rounding decides between two.
    ("qwen3-moe-bf16", QWEN3_MOE,
     dict(head_dim=16, num_experts=4, num_experts_per_tok=4, moe_intermediate_size=40, decoder_sparse_step=2,
          tie_word_embeddings=True),
     {"rope_type": "default", "rope_theta": 10000.0}, dict(dtype=BF16)),
    ("qwen3-moe-plain", QWEN3_MOE,
     dict(head_dim=16, num_experts=5, num_experts_per_tok=1, moe_intermediate_size=32, norm_topk_prob=False),
     {"rope_type": "default", "rope_theta": 10000.0}, {}),
]

# name, class, config members: models without a language model's head, in float32.
HEADS = [
    ("qwen3-classifier", "Qwen3ForSequenceClassification", QWEN3,
     dict(head_dim=16, tie_word_embeddings=True, pad_token_id=0,
          id2label={0: "bad", 1: "fair", 2: "good"}, label2id={"bad": 0, "fair": 1, "good": 2})),
    ("llama-reward", "LlamaForSequenceClassification", LLAMA, dict(pad_token_id=0, num_labels=1)),
    ("qwen3-body", "Qwen3Model", QWEN3, dict(head_dim=16)),  # tensors named without "model."
    ("mistral-classifier", "MistralForSequenceClassification", MISTRAL,
     dict(pad_token_id=0, num_labels=4, sliding_window=None)),
    ("qwen2-classifier", "Qwen2ForSequenceClassification", QWEN2,
     dict(pad_token_id=0, num_labels=2, use_sliding_window=False)),
    ("qwen2-reward", "Qwen2ForRewardModel", QWEN2,
     dict(pad_token_id=0, num_labels=2, use_sliding_window=False)),
]

# name, head_dim, rope_parameters: shapes of published models and corners.
ROPES = [
    ("default", 64, {"rope_type": "default", "rope_theta": 10000.0}),
    ("default-million", 128, {"rope_type": "default", "rope_theta": 1000000.0}),
    ("linear", 64, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    ("llama3-8", 128,
     {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    ("llama3-32", 64,
     {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    ("yarn", 128,
     {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0,
      "original_max_position_embeddings": 32768}),
    ("yarn-attention-factor", 64,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "attention_factor": 0.75,
      "original_max_position_embeddings": 4096}),
    ("yarn-betas", 64,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "beta_fast": 16.0,
      "beta_slow": 2.0, "original_max_position_embeddings": 4096}),
    ("yarn-mscales", 64,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "mscale": 1.0,
      "mscale_all_dim": 0.5, "original_max_position_embeddings": 4096}),
    ("yarn-equal-mscales", 64,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "mscale": 0.707,
      "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096}),
    ("yarn-not-truncated", 64,
     {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0,
      "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096}),
    ("yarn-factor-below-1", 64,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 1.0,
      "original_max_position_embeddings": 2048}),
    ("yarn-small-original", 16,
     {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
      "original_max_position_embeddings": 32}),
]


@contextlib.contextmanager
def float32_means_float64():
    """Code that names float32, or calls .float(), gets float64 meanwhile."""
    saved = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved


class Qwen2ForRewardModel(transformers.Qwen2ForSequenceClassification):
    """Qwen2.5-Math-RM's head, whose code comes with its weights: two layers with a ReLU, one output."""

    def __init__(self, config):
        super().__init__(config)
        self.num_labels = 1
        self.score = torch.nn.Sequential(torch.nn.Linear(config.hidden_size, config.hidden_size), torch.nn.ReLU(),
                                         torch.nn.Linear(config.hidden_size, 1))
        self.post_init()


def make_config(architecture, members, rope):
    base = dict(vocab_size=128, hidden_size=64, intermediate_size=112, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
                rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)
    return CONFIGS[architecture](**{**base, **members}, rope_parameters=dict(rope))


def randomize(model, generator):
    """No weight keeps a trivial value; logits spread with a standard deviation of about 3."""
    hidden = model.config.hidden_size
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if "norm" in name:
            noise = 1 + 0.3 * noise
        elif name.endswith("bias"):
            noise = 0.5 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            noise = 3 * noise / hidden**0.5
        else:
            gain = 1.6 if "q_proj" in name or "k_proj" in name else 1.0
            noise = gain * noise / weight.shape[-1]**0.5
        # What bfloat16 and float16 both hold, so that neither file loses anything.
        short = noise.to(BF16).to(F16)
        short[short.abs() < 2**-10] = 0
        assert torch.equal(short.to(BF16).to(F32), short.to(F32))
        exact = model.config.dtype in (F16, BF16)
        weight.data.copy_(short if exact else noise)


def write_config(path, config, rope, options):
    written = json.loads(path.read_text())
    if options.get("old"):  # as transformers 4 wrote it
        scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
        if options.get("type_key"):
            scaling[options["type_key"]] = scaling.pop("rope_type")
        for key in ("rope_parameters", "layer_types"):
            written.pop(key, None)
        written["rope_theta"] = rope["rope_theta"]
        written["rope_scaling"] = None if rope["rope_type"] == "default" else scaling
        written["torch_dtype"] = written.pop("dtype")
        if "num_local_experts" in written:
            written["num_experts"] = written.pop("num_local_experts")
        written["transformers_version"] = "4.51.0"
    else:
        assert written["rope_parameters"] == rope, written
    path.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")


def load_double(folder, cls=AutoModelForCausalLM):
    model = cls.from_pretrained(folder, dtype="auto",
                                attn_implementation="eager", experts_implementation="eager").eval().double()
    body = getattr(model, "model", model)
    with float32_means_float64():
        body.rotary_emb = type(body.rotary_emb)(config=model.config)
    assert body.rotary_emb.inv_freq.dtype == torch.float64
    return model


def log_probs(model, ids):
    """[len(ids), vocab], float64."""
    with torch.no_grad(), float32_means_float64():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    assert logits.dtype == torch.float64
    return torch.log_softmax(logits, dim=-1)


def greedy(model, prompt, count):
    """The continuation and the smallest gap between the two best tokens on the way."""
    ids, gap = list(prompt), float("inf")
    for _ in range(count):
        best = log_probs(model, ids)[-1].topk(2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
    return ids[len(prompt):], gap


def golden_prompt(model, length, count, min_gap, generator):
    """A random prompt whose greedy continuation has no close decision."""
    for _ in range(500):
        prompt = torch.randint(3, model.config.get_text_config().vocab_size, (length,), generator=generator).tolist()
        continuation, gap = greedy(model, prompt, count)
        if gap >= min_gap:
            break
    else:
        raise RuntimeError(f"no prompt of {length} tokens with a gap of {min_gap}")
    table = log_probs(model, prompt)
    best = table.topk(TOP)
    return {"prompt_ids": prompt,
            "top_ids": best.indices.tolist(),
            "top_logprobs": [[round(x, 12) for x in row] for row in best.values.tolist()],
            "last_logprobs": [round(x, 12) for x in table[-1].tolist()],
            "greedy_ids": continuation, "min_top2_gap": round(gap, 6)}


def write_golden(folder, reference, dtype, lengths, seed, generator):
    """golden.json of a model whose file has this type; the prompts are random."""
    low = dtype != F32
    prompts = [golden_prompt(reference, length, 16 if low else 24, 0.2 if low else 0.05, generator)
               for length in lengths]
    golden = {"file_dtype": str(dtype).removeprefix("torch."), "computed_in": "float64",
              "vocab_size": reference.get_input_embeddings().weight.shape[0], "seed": seed,
              "torch": torch.__version__, "transformers": transformers.__version__,
              "min_top2_gap": min(p["min_top2_gap"] for p in prompts), "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    spread = torch.tensor([p["last_logprobs"] for p in prompts]).std(dim=1).mean().item()
    print(f"{folder.name}: {sum(p.numel() for p in reference.parameters())} parameters, "
          f"std of log-probabilities {spread:.2f}, closest decision {golden['min_top2_gap']}")


def make_model(folder, architecture, members, rope, options, seed):
    dtype = options.get("dtype", F32)
    config = make_config(architecture, members, rope)
    config.dtype = dtype
    model = getattr(transformers, architecture)(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    model.generation_config.bos_token_id = 1
    model.generation_config.eos_token_id = options.get("eos", 2)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size=options.get("max_shard_size", "50GB"))
    write_config(folder / "config.json", config, rope, options)

    reference = load_double(folder)
    write_golden(folder, reference, dtype, PROMPT_LENGTHS, seed, generator)


def make_head(folder, cls_name, architecture, members, seed):
    config = make_config(architecture, {"num_hidden_layers": 1, "intermediate_size": 64, **members},
                         {"rope_type": "default", "rope_theta": 10000.0})
    config.dtype = F32
    cls = globals().get(cls_name) or getattr(transformers, cls_name)
    model = cls(config)
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    reference = load_double(folder, cls)
    body = getattr(reference, "model", reference)
    prompts = []
    for length in PROMPT_LENGTHS:
        ids = torch.randint(3, config.vocab_size, (length,), generator=generator)
        with torch.no_grad(), float32_means_float64():
            hidden = body(input_ids=ids[None], use_cache=False).last_hidden_state[0]
            assert hidden.dtype == torch.float64
            prompt = {"prompt_ids": ids.tolist(),
                      "last": hidden[-1].tolist(), "cls": hidden[0].tolist(),
                      "mean": hidden.mean(dim=0).tolist()}
            if body is not reference:
                prompt["classes"] = reference(input_ids=ids[None]).logits[0].tolist()
        prompts.append(prompt)
    golden = {"computed_in": "float64", "seed": seed, "torch": torch.__version__,
              "transformers": transformers.__version__, "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(f"{folder.name}: {sum(p.numel() for p in model.parameters())} parameters, "
          f"{[prompt.get('classes') for prompt in prompts]}")


def make_ropes(path):
    tables = []
    for name, head_dim, rope in ROPES:
        config = transformers.LlamaConfig(
            hidden_size=head_dim * 4, num_attention_heads=4, head_dim=head_dim,
            max_position_embeddings=int(rope.get("original_max_position_embeddings", 4096) *
                                        rope.get("factor", 1)), rope_parameters=dict(rope))
        with float32_means_float64():
            if rope["rope_type"] == "default":
                embedding = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
                inv_freq, factor = embedding.inv_freq, embedding.attention_scaling
            else:
                inv_freq, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu")
        assert inv_freq.dtype == torch.float64
        tables.append({"name": name, "head_dim": head_dim, "rope_parameters": rope,
                       "inv_freq": inv_freq.tolist(), "attention_factor": float(factor)})
    path.write_text(json.dumps(tables, indent=1) + "\n")
    print(f"{path.name}: {len(tables)} tables")


def make_all(models, make_model, folder, seed):
    """The command line of a script with a list of models: each as make_model(its folder, ..., its seed) writes it."""
    parser = argparse.ArgumentParser()
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / folder
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--only", default="", help="the models whose names begin so")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for i, (name, *rest) in enumerate(models):
        if name.startswith(args.only):
            make_model(args.out / name, *rest, seed + i)


def main():
    parser = argparse.ArgumentParser()
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=default)
    out = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for part in ("models", "heads"):
        (out / part).mkdir(parents=True, exist_ok=True)
    for i, (name, cls_name, architecture, members) in enumerate(HEADS):
        make_head(out / "heads" / name, cls_name, architecture, members, SEED + 100 + i)
    make_ropes(out / "rope.json")
    for i, (name, architecture, members, rope, options) in enumerate(MODELS):
        make_model(out / "models" / name, architecture, members, rope, options, SEED + i)


if __name__ == "__main__":
    main()
