"""SmolLM2-135M with a LoRA adapter, written out for training on a processor.

The base weights stay as they are, in bfloat16 or float32; the adapter's matrices are float32 and are
rounded to the base's type once in each step. Shapes: T tokens of the batch's rows together, D = 576, R = 8.
"""
import json
import math

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, INNER = 30, 576, 9, 3, 64, 1536
ROPE_THETA, NORM_EPS = 100000.0, 1e-5
PARTS = {"self_attn.q_proj": (WIDTH, HEADS * HEAD), "self_attn.k_proj": (WIDTH, KV_HEADS * HEAD),
         "self_attn.v_proj": (WIDTH, KV_HEADS * HEAD), "self_attn.o_proj": (HEADS * HEAD, WIDTH),
         "mlp.gate_proj": (WIDTH, INNER), "mlp.up_proj": (WIDTH, INNER), "mlp.down_proj": (INNER, WIDTH)}


class Adapter(nn.Module):
    """One pair of matrices for every part of every layer; B starts at zero, so it starts as the base."""

    def __init__(self, rank, alpha, first_layer=0):
        super().__init__()
        self.rank, self.alpha, self.first_layer = rank, alpha, first_layer
        self.pairs = nn.ParameterDict()
        for layer in range(first_layer, LAYERS):
            for part, (width_in, width_out) in PARTS.items():
                key = self.key(layer, part)
                bound = 1 / math.sqrt(width_in)
                self.pairs[key + "_A"] = nn.Parameter(torch.empty(rank, width_in).uniform_(-bound, bound))
                self.pairs[key + "_B"] = nn.Parameter(torch.zeros(width_out, rank))

    @staticmethod
    def key(layer, part):
        return f"{layer}_{part.replace('.', '_')}"

    def rounded(self, dtype):
        """The matrices in the net's type, B with the factor alpha / rank; one step's copy."""
        scale = self.alpha / self.rank
        return {k: (v * scale if k.endswith("_B") else v).to(dtype) for k, v in self.pairs.items()}

    def save(self, folder, base):
        names = {(n, p): f"base_model.model.model.layers.{n}.{p}"
                 for n in range(self.first_layer, LAYERS) for p in PARTS}
        tensors = {f"{name}.lora_{m}.weight": self.pairs[f"{self.key(*place)}_{m}"].detach().bfloat16()
                   .contiguous() for place, name in names.items() for m in "AB"}
        save_file(tensors, str(folder / "adapter_model.safetensors"), metadata={"format": "pt"})
        config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base,
                  "r": self.rank, "lora_alpha": self.alpha, "lora_dropout": 0.0, "bias": "none",
                  "target_modules": [p.split(".")[1] for p in PARTS], "fan_in_fan_out": False,
                  "inference_mode": True, "modules_to_save": None}
        if self.first_layer:
            config["layers_to_transform"] = list(range(self.first_layer, LAYERS))
        (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

    @staticmethod
    def load(folder):
        config = json.loads((folder / "adapter_config.json").read_text())
        adapter = Adapter(config["r"], config["lora_alpha"],
                          min(config.get("layers_to_transform", [0])))
        for name, tensor in load_file(str(folder / "adapter_model.safetensors")).items():
            layer, part = name.split("layers.")[1].split(".lora_")[0].split(".", 1)
            adapter.pairs[f"{adapter.key(layer, part)}_{name.split('lora_')[1][0]}"].data = tensor.float()
        return adapter


def norm(x, weight):
    return F.rms_norm(x, (WIDTH,), weight, NORM_EPS)


def turned(x, cos, sin):
    """Rotary positions, HuggingFace's order: the halves of a head are the pairs."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Net:
    """The frozen base; `hidden` and `logits` take a step's adapter matrices, or None for the base."""

    def __init__(self, state, dtype):
        self.dtype = dtype
        self.weights = {k.removeprefix("model."): v.to(dtype) for k, v in state.items()}
        self.embedding = self.weights["embed_tokens.weight"]
        angles = torch.arange(2048)[:, None] / ROPE_THETA ** (torch.arange(0, HEAD, 2) / HEAD)
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def linear(self, x, layer, part, pairs):
        y = F.linear(x, self.weights[f"layers.{layer}.{part}.weight"])
        key = Adapter.key(layer, part)
        if pairs is None or key + "_A" not in pairs:
            return y
        return y + F.linear(F.linear(x, pairs[key + "_A"]), pairs[key + "_B"])

    def attention(self, x, layer, pairs, places, mask):
        rows, length = x.shape[:2]
        q, k, v = (self.linear(x, layer, f"self_attn.{n}_proj", pairs).view(rows, length, -1, HEAD)
                   .transpose(1, 2) for n in "qkv")
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None,
                                               enable_gqa=True)
        return self.linear(mixed.transpose(1, 2).reshape(rows, length, -1), layer, "self_attn.o_proj", pairs)

    def mlp(self, x, layer, pairs):
        gate, up = (self.linear(x, layer, f"mlp.{n}_proj", pairs) for n in ("gate", "up"))
        return self.linear(F.silu(gate) * up, layer, "mlp.down_proj", pairs)

    def hidden(self, ids, pairs, segments=None):
        """ids [rows, length], padded at the end (causal attention never reads the padding).

        segments [rows, length]: 0 is a row's head, which all its other segments read; n > 0 reads itself
        and the head, and its positions go on behind the head's.
        """
        places, mask = torch.arange(ids.shape[1])[None], None
        if segments is not None:
            own = segments[:, :, None] == segments[:, None, :]
            mask = torch.tril(own | (segments == 0)[:, None, :])
            places = mask.sum(-1) - 1
            mask = mask[:, None]
        x = F.embedding(ids, self.embedding)
        for layer in range(LAYERS):
            name = f"layers.{layer}."
            x = x + self.attention(norm(x, self.weights[name + "input_layernorm.weight"]), layer, pairs,
                                   places, mask)
            x = x + self.mlp(norm(x, self.weights[name + "post_attention_layernorm.weight"]), layer, pairs)
        return x

    def logits(self, ids, wanted, pairs, segments=None):
        """[wanted places, vocabulary], float32; `wanted` is a bool mask over ids."""
        last = norm(self.hidden(ids, pairs, segments)[wanted], self.weights["norm.weight"])
        return F.linear(last, self.embedding).float()
