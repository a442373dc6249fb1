"""The default model in PyTorch: Qwen3's architecture, with a mask for questions that share a text."""
import math

import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "intermediate_size": 384, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "max_position_embeddings": 2048, "tie_word_embeddings": True, "attention_bias": False,
    "torch_dtype": "bfloat16",
}


class RmsNorm(torch.autograd.Function):
    """x / rms(x) * weight over the last dimension, with few passes over memory in either direction."""

    @staticmethod
    def forward(ctx, x, weight):
        wide = torch.promote_types(x.dtype, torch.float32)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=wide)
        scale = (norm.square() / x.shape[-1] + CONFIG["rms_norm_eps"]).rsqrt().to(x.dtype)
        y = x * scale
        ctx.save_for_backward(y, scale, weight)
        return y * weight

    @staticmethod
    def backward(ctx, grad):
        y, scale, weight = ctx.saved_tensors
        product = grad * y
        along = (product @ weight / y.shape[-1]).unsqueeze(-1)
        grad_x = torch.addcmul(grad * weight, y, along, value=-1).mul_(scale)
        return grad_x, product.flatten(0, -2).sum(0)


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return RmsNorm.apply(x, self.weight)


def rotate(x, cos, sin):
    # x [B, H, T, D]; cos, sin [B, 1, T, D/2]
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.dim = (c["num_attention_heads"], c["num_key_value_heads"],
                                               c["head_dim"])
        hidden = c["hidden_size"]
        self.q_proj = nn.Linear(hidden, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, hidden, bias=False)
        self.q_norm, self.k_norm = Norm(self.dim), Norm(self.dim)

    @torch.no_grad()
    def init_to_match(self):
        """Keys start as the queries of each group's first head, and outputs as the values transposed: a
        place looks for its like and copies what it finds (Trockman and Kolter 2023, "Mimetic
        initialization of self-attention layers", in its simplest form). Reading options is learnt
        from such matching."""
        groups = self.heads // self.kv_heads
        hidden = self.o_proj.weight.shape[0]
        queries = self.q_proj.weight.view(self.kv_heads, groups, self.dim, hidden)
        self.k_proj.weight.copy_(queries[:, 0].reshape(-1, hidden))
        values = self.v_proj.weight.view(self.kv_heads, 1, self.dim, hidden)
        self.o_proj.weight.copy_(0.5 * values.expand(-1, groups, -1, -1).reshape(-1, hidden).T)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, length, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, length, self.kv_heads, self.dim)).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        groups = self.heads // self.kv_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        # Written out: on short rows faster than torch's fused attention with a mask.
        scores = (q @ k.transpose(-1, -2)) * self.dim ** -0.5 + mask
        out = scores.softmax(-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.self_attn = Norm(c["hidden_size"]), Attention(c)
        self.post_attention_layernorm, self.mlp = Norm(c["hidden_size"]), Mlp(c)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Net(nn.Module):
    """Parameters are named as in a HuggingFace checkpoint, less the prefix `model.`."""

    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"])
        half = config["head_dim"] // 2
        self.register_buffer("inverse", config["rope_theta"] ** (-torch.arange(half) / half),
                             persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = 0.02 if "embed" in name else 1 / math.sqrt(p.shape[1])
                if "o_proj" in name or "down_proj" in name:
                    scale /= math.sqrt(2 * config["num_hidden_layers"])
                nn.init.normal_(p, std=scale)
        for layer in self.layers:
            layer.self_attn.init_to_match()

    def forward(self, ids, positions, segments, wanted, lines=None):
        """ids, positions, segments [B, T]; a token sees what is before it in its own segment and in
        segment 0, the shared head; padding has segment -1. wanted: [B, T] of bool; logits [sum, V] of
        the wanted places, row by row. With lines [B, T] of bool: (these, logits at the lines' places of
        what the last layer gets, [sum, V])."""
        length = ids.shape[1]
        angle = (positions[..., None] * self.inverse)[:, None]
        cos, sin = angle.cos(), angle.sin()
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        seen = (segments[:, None, :] == 0) | (segments[:, None, :] == segments[:, :, None])
        x = self.embed_tokens(ids)
        mask = torch.zeros(seen.shape, dtype=x.dtype).masked_fill_(~(causal & seen), -1e9)[:, None]
        for layer in self.layers:
            before_last = x
            x = layer(x, cos.to(x.dtype), sin.to(x.dtype), mask)
        logits = F.linear(self.norm(x[wanted]), self.embed_tokens.weight)
        if lines is None:
            return logits
        return logits, F.linear(self.norm(before_last[lines]), self.embed_tokens.weight)


class Trainer:
    """f32 masters of a bf16 net: Muon for the matrices, Adam for embeddings and norms.

    Muon: momentum, then the nearest orthogonal matrix by Newton-Schulz steps (K. Jordan, 2024: "Muon:
    an optimizer for hidden layers in neural networks"; the quintic's coefficients are his).
    """

    def __init__(self, net, adam_rate, muon_rate=0.02, momentum=0.95):
        self.net, self.adam_rate, self.muon_rate, self.momentum = net, adam_rate, muon_rate, momentum
        self.parameters = list(net.parameters())
        self.masters = [p.detach().clone().requires_grad_() for p in self.parameters]
        named = list(zip([n for n, _ in net.named_parameters()], self.masters))
        self.matrices = [p for n, p in named if p.dim() == 2 and "embed" not in n]
        self.buffers = [torch.zeros_like(p) for p in self.matrices]
        self.adam = torch.optim.AdamW([p for n, p in named if p.dim() != 2 or "embed" in n],
                                      betas=(0.9, 0.98), weight_decay=0.0)
        net.bfloat16()

    @torch.no_grad()
    def step(self, scale, processes, flag):
        """One step at `scale` of the full rates, with the mean gradient of all processes; whether any of
        them had set `flag`."""
        flags = torch.tensor([float(flag)])
        flat = torch.cat([p.grad.flatten().float() for p in self.parameters] + [flags])
        torch.distributed.all_reduce(flat)
        flat /= processes
        for p, part in zip(self.masters, flat[:-1].split([p.numel() for p in self.masters])):
            p.grad = part.view_as(p)
        for p, buffer in zip(self.matrices, self.buffers):
            self.muon(p, buffer, self.muon_rate * scale)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * scale
        self.adam.step()
        for p, master in zip(self.parameters, self.masters):
            p.copy_(master)
        self.net.zero_grad()
        return flat[-1].item() > 0

    def muon(self, p, buffer, rate):
        buffer.lerp_(p.grad, 1 - self.momentum)
        x = p.grad.lerp(buffer, self.momentum)
        tall = x.shape[0] > x.shape[1]
        x = ((x.T if tall else x) / (x.norm() + 1e-7)).bfloat16()
        for _ in range(5):
            square = x @ x.T
            x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
        x = (x.T if tall else x).float()
        p.mul_(1 - 0.02 * rate)
        p.add_(x, alpha=-rate * max(1, p.shape[0] / p.shape[1]) ** 0.5)
