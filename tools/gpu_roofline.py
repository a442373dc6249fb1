#!/usr/bin/env python3
"""Predicted times of the CUDA executor: bytes and operations of each launch against a GPU's limits.

    tools/gpu_roofline.py           the tables of docs/results/gpu.md, and of shared prefixes in docs/gpu.md

A launch takes the longer of its bytes at the memory's speed and its operations at the tensor cores', both times
a share that kernels of this kind are assumed to reach, and at least one launch. Nothing here was measured.
"""

# (name, TFLOP/s of dense bf16, TB/s): the makers' data sheets.
GPUS = [("A100 80GB", 312.0, 2.04), ("H200", 989.0, 4.8)]
COMPUTE_SHARE = 0.45  # mma.sync without wgmma
MEMORY_SHARE = 0.75
LAUNCH_US = 3.0       # of a launch by the host: prompts
GRAPH_LAUNCH_US = 1.5  # of one inside a graph: decodes
L2_TBPS = 5.8          # of an H200, as attention has shown (docs/gpu.md, "Attention")
TILE_ROWS = 16         # query rows of a narrow tile

# (name, layers, hidden, heads, KV heads, head_dim, intermediate, vocab)
MODELS = [("Qwen3-0.6B", 28, 1024, 16, 8, 128, 3072, 151936), ("Qwen3-4B", 36, 2560, 32, 8, 128, 9728, 151936),
          ("Qwen3-8B", 36, 4096, 32, 8, 128, 12288, 151936)]


def product(m, n, k):
    """(operations, bytes) of a product of bf16 with f32 outputs."""
    return 2 * m * n * k, 2 * n * k + 2 * m * k + 4 * m * n


def launches(model, rows, tokens, context):
    """(operations, bytes) of each launch of a pass over `rows` sequences of `tokens` new tokens each."""
    _, layers, hidden, heads, kv_heads, dim, mlp, vocab = model
    m, q, kv = rows * tokens, heads * dim, kv_heads * dim
    keys = m * (context + (tokens + 1) / 2)

    def norm(n):
        return 0, 6 * n * hidden

    def rest(n, keys):
        """The layer behind its keys and values, for n tokens that see `keys` keys in all."""
        return [(4 * keys * q, 4 * kv * rows * (context + tokens) + 4 * n * q), product(n, hidden, q), norm(n),
                product(n, 2 * mlp, hidden), product(n, hidden, mlp)]

    stored = [norm(m), product(m, q + 2 * kv, hidden), (0, 6 * m * (q + 2 * kv))]
    gathered = [(0, 2 * rows * (4 * hidden + 2 * q))] if tokens > 1 else []  # rows with outputs, in the last layer
    return [norm(m)] + (stored + rest(m, keys)) * (layers - 1) + stored + gathered + \
        rest(rows, rows * (context + tokens)) + [norm(rows), product(rows, vocab, hidden)]


def seconds(gpu, model, rows, tokens, context):
    _, tflops, tbps = gpu
    least = (GRAPH_LAUNCH_US if tokens == 1 else LAUNCH_US) * 1e-6
    return sum(max(operations / (tflops * 1e12 * COMPUTE_SHARE), moved / (tbps * 1e12 * MEMORY_SHARE), least)
               for operations, moved in launches(model, rows, tokens, context))


def lines():
    """The table's."""
    found = ["| model | work | " + " | ".join(name for name, _, _ in GPUS) + " |", "|---|---|" + "---|" * len(GPUS)]
    for model in MODELS:
        for rows, tokens, context in [(1, 128, 0), (1, 512, 0), (1, 2048, 0), (1, 1, 512), (4, 1, 128), (64, 1, 512)]:
            work = f"TTFT, {tokens} tokens" if tokens > 1 else f"TPOT, {rows} behind {context} tokens"
            times = [f"{seconds(gpu, model, rows, tokens, context) * 1e3:.2f} ms" for gpu in GPUS]
            found.append(f"| {model[0]} | {work} | " + " | ".join(times) + " |")
    return found


def attention(gpu, model, rows, shared, own, tiles):
    """Seconds of a layer's attention: single tokens behind `shared` common keys, which `tiles` tiles read, and `own` more."""
    _, tflops, tbps = gpu
    _, _, _, heads, kv_heads, dim, _, _ = model
    q, key = heads * dim, 4 * kv_heads * dim
    return max(4 * rows * (shared + own) * q / (tflops * 1e12 * COMPUTE_SHARE),
               (key * (shared + rows * own) + 4 * rows * q) / (tbps * 1e12 * MEMORY_SHARE),
               key * (tiles * shared + rows * own) / (L2_TBPS * 1e12), GRAPH_LAUNCH_US * 1e-6)


def shared_lines():
    """The table of steps of decodes whose prompts have a common prefix: each reads it alone, or tiles of all."""
    gpu = next(gpu for gpu in GPUS if gpu[0] == "H200")
    found = ["| model | decodes | shared, own tokens | alone | together |", "|---|---|---|---|---|"]
    for model in MODELS:
        layers, group = model[1], model[3] // model[4]
        for rows, shared, own in [(64, 1024, 64), (64, 4096, 256), (256, 1024, 64)]:
            rest = seconds(gpu, model, rows, 1, 0) - layers * attention(gpu, model, rows, 0, 1, rows)
            alone = rest + layers * attention(gpu, model, rows, shared, own, rows)
            tiles = -(-rows * group // TILE_ROWS)
            together = rest + layers * (attention(gpu, model, rows, shared, own, tiles) + GRAPH_LAUNCH_US * 1e-6)
            found.append(f"| {model[0]} | {rows} | {shared:,}, {own} | {alone * 1e3:.2f} ms | {together * 1e3:.2f} ms |")
    return found


def main():
    print("\n".join([*lines(), "", *shared_lines()]))


if __name__ == "__main__":
    main()
