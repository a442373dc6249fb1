#!/usr/bin/env python3
"""Writes docs/results/gpu.md from the JSON of scripts/gpu_check, beside the targets, the papers' figures and the predictions.

    tools/gpu_page.py [JSON]    default: docs/results/data/gpu-h200.json
"""
import json
import pathlib
import sys

import gpu_roofline
import pages
import ptxas_table
from charts import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/results/data/gpu-h200.json"
PAGE = ROOT / "docs/results/gpu.md"
THROUGHPUT_LEAST = 190.0
PRELUDE_AT, VLLM_AT, SGLANG_AT = (70.5, 186.7), (47.8, 134.3), (42.6, 148.2)  # req/s of one client and of 128


def part(data, name):
    """What a part found; empty if it did not run."""
    return data["parts"].get(name, {})


def load_of(data, clients):
    return next((one for one in part(data, "latency").get("loads", []) if one["clients"] == clients), None)


def granularity(data, name):
    return next((one for one in part(data, "preemption").get("granularities", []) if one["granularity"] == name), None)


def ttft_row(data):
    one = load_of(data, 1)
    return None if one is None else (f"{one['median_ttft_ms']:.2f} ms", one["median_ttft_ms"] <= 1.2)


def latency_row(data):
    four = load_of(data, 4)
    if four is None or "median_tpot_ms" not in four:
        return None
    return (f"{four['median_ttft_ms']:.2f} / {four['median_tpot_ms']:.2f} ms", four["median_ttft_ms"] <= 5 and four["median_tpot_ms"] <= 1.2)


def throughput_row(data):
    levels = part(data, "throughput").get("levels", [])
    if not levels:
        return None
    rates = [level["request_throughput"] for level in levels]
    ends = [(levels[0]["clients"], rates[0]), (levels[-1]["clients"], rates[-1])]
    ahead = all(clients == at and rate > other for (clients, rate), at, other in zip(ends, (1, 128), PRELUDE_AT)) and max(rates) >= THROUGHPUT_LEAST
    return (f"{rates[0]:.1f} ... {rates[-1]:.1f}, peak {max(rates):.1f}", ahead)


def scoring_row(data):
    found = part(data, "scoring")
    best = max((found.get(f"{queries}_items_per_s", 0.0) for queries in ("own", "common")), default=0.0)
    return None if not found.get("levels") else (f"{best:.0f} items/s", best >= 2000)


def ready_row(data):
    seconds = part(data, "ready").get("median_ready_s")
    return None if seconds is None else (f"{seconds:.2f} s", seconds <= 2.0)


def preemption_row(data):
    layer, op = granularity(data, "layer"), granularity(data, "op")
    if layer is None or op is None:
        return None
    ratio = layer["mean_ms"] / op["mean_ms"]
    return (f"{ratio:.2f}; p99 {op['p99_ms']:.2f} ms", ratio >= 3.5 and op["p99_ms"] < 4.5)


# (work, Prelude, vLLM, SGLang, target, the figure that the verdict names, the measured one and whether it reaches the target)
TARGETS = [
    ("0.6B, 128 in / 1 out, one client: TTFT", "5.1 ms", "13.3", "28.2", "at most 1.2 ms", "Prelude's 5.1 ms", ttft_row),
    ("0.6B, 128 in / 32 out, 4 clients: TTFT / TPOT", "14.6 / 2.1 ms", "30.9 / 1.7", "48.3 / 1.8", "at most 5 / 1.2 ms", "Prelude's 14.6 / 2.1 ms",
     latency_row),
    ("4B, 512 in / 1 out: req/s at 1 ... 128 clients", *(f"{first} ... {last}" for first, last in (PRELUDE_AT, VLLM_AT, SGLANG_AT)),
     f"ahead at each, peak at least {THROUGHPUT_LEAST:g}", "Prelude's 70.5 ... 186.7", throughput_row),
    ("scoring, 0.6B, 300 tokens, p99 below 500 ms", "", "", "1,200 items/s (H100, no radix cache)", "2,000 items/s with the prefix cache",
     "SGLang's 1,200 on an H100", scoring_row),
    ("start to ready, 0.6B", "2 s", "44", "34", "at most 2 s", "Prelude's 2 s", ready_row),
    ("blocking, 8B, 16K tokens: layer over operator", "FlowPrefill: 3.5 to 4.2", "", "", "at least 3.5; p99 below 4.5 ms", "FlowPrefill's 3.5 to 4.2",
     preemption_row),
]


def verdicts(data):
    """(work, measured, target, verdict) of each target. A quick or emulated run is a trial: other models, other sizes."""
    rows = []
    for work, *_, target, _, row in TARGETS:
        figure, met = row(data) or ("-", None)
        verdict = "not measured" if met is None else "trial" if data["emulated"] or data["quick"] else "met" if met else "missed"
        rows.append((work, figure, target, verdict))
    return rows


def target_lines(data):
    rows = [[work, *papers, target, measured, verdict if measured == "-" else f"{verdict}, beside {rival}"]
            for (work, *papers, _, rival, _), (_, measured, target, verdict) in zip(TARGETS, verdicts(data))]
    return ["## Targets", "",
            "The figures of Prelude, vLLM and SGLang are those that Prelude published for one H200; the last but one is SGLang's own, the",
            "last FlowPrefill's.", "",
            *table(["work", "Prelude", "vLLM", "SGLang", "target", "Skein", "verdict"], rows)]


def kernel_lines(data):
    kernels = part(data, "kernels").get("kernels", [])
    if not kernels:
        return []
    equal = sum(kernel["difference"] == 0 for kernel in kernels)
    others = ", ".join(f"{kernel['kernel']} ({kernel['difference']:.2g})" for kernel in kernels if kernel["difference"] != 0)
    wrong = [kernel["kernel"] for kernel in kernels if not kernel["right"]]
    return ["## Kernels and bits", "",
            f"In {equal} of {len(kernels)} cases of kernels every bit is the emulator's. The others differ by this share of their largest output:",
            f"{others or 'none'}. " + (f"Wrong: {', '.join(wrong)}." if wrong else "None is wrong, and each gives the same bits again."), ""]


def identity_lines(data):
    lines = []
    for model, cases in part(data, "identity").get("models", {}).items():
        broken = [f"{case['case']} ({case['first']})" for case in cases if case["different"]]
        lines.append(f"Identity on {model}: {sum(case['compared'] for case in cases)} answers in {len(cases)} cases (alone, together, in chunks,")
        lines.append("behind cached prefixes, as forks, decoded) " + (f"have OTHER BITS in: {'; '.join(broken)}." if broken else
                                                                     "have the bits of the prompt computed alone and whole."))
        lines.append("")
    served = part(data, "schedules").get("schedules", [])
    if served:
        broken = [one["options"] for one in served if not (one["alone_and_together"] and one["equal_to_first"])]
        lines += [f"Servers with `{'`, `'.join(one['options'] for one in served)}` gave {served[0]['answers']} answers of "
                  f"{part(data, 'schedules')['tokens']} tokens each from `models/default`, greedy and drawn, with log-probabilities, one by one and",
                  "all together, and scores. " + (f"OTHER BITS with `{'`, `'.join(broken)}`." if broken else "All are equal, bit for bit."),
                  part(data, "schedules").get("note", ""), ""]
    for one in part(data, "decisions").get("models", []):
        lines += [f"`tests/data/{one['model']}` answered {one['answers']} requests on the device and on the processor (AVX2)"
                  f"{', in f32' if part(data, 'decisions')['options'] else ''}: {'all equal' if not one['different'] else str(one['different']) + ' DIFFER'}; "
                  f"{one['right']} of {one['read']} choices and scores are right.", ""]
    return lines


def product_lines(data):
    products = part(data, "products").get("products", [])
    if not products:
        return []
    rows = [[p["m"], p["n"], p["k"], f"{p['us']:.1f}", f"{p['gbps']:.0f}", f"{p['tflops']:.1f}"] for p in products]
    return ["## Products of bf16", "", "Random weights that no cache holds, and random rows; the memory's speed is 4,800 GB/s.", "", *table(["rows", "n", "k", "us", "GB/s of weights", "TFLOP/s"], rows)]


SHAPES = {"qwen3-0.6b": 0, "qwen3-4b": 1, "qwen3-8b": 2}  # the places in gpu_roofline.MODELS


def pass_lines(data):
    rows = []
    gpu = next(gpu for gpu in gpu_roofline.GPUS if gpu[0] == "H200")
    for shape, passes in part(data, "passes").get("models", {}).items():
        model = gpu_roofline.MODELS[SHAPES[shape]] if shape in SHAPES else None

        def row(work, measured_ms, *predicted):
            expected = gpu_roofline.seconds(gpu, model, *predicted) * 1e3 if model else 0.0
            rows.append([shape, work, f"{measured_ms:.2f}", f"{expected:.2f}" if model else "-", f"{measured_ms / expected:.1f}" if model else "-"])

        for one in passes["prefill"]:
            prompts, tokens = one.get("prompts", 1), one["prompt_tokens"]
            row(f"TTFT, {tokens} tokens" if prompts == 1 else f"TTFT, {prompts} prompts of {tokens} tokens", one["ttft_ms"], prompts, tokens, 0)
        for one in passes["decode"]:
            row(f"TPOT, {one['batch']} behind {one['context']} tokens", one["tpot_ms"], one["batch"], 1, one["context"])
    if not rows:
        return []
    return ["## Passes", "", "Straight through the executor, without a server; predicted as below.", "",
            *table(["model", "work", "measured ms", "predicted ms", "measured / predicted"], rows)]


def profile_lines(data):
    """The kernels that take 3 % of a pass or more."""
    rows = []
    for shape, passes in part(data, "profile").get("models", {}).items():
        for one in passes:
            for kernel in one["kernels"]:
                if kernel["us"] >= 0.03 * one["us"]:
                    rows.append([shape, one["pass"], kernel["kernel"], kernel["launches"], f"{kernel['us'] / kernel['launches']:.1f}",
                                 f"{kernel['us'] / one['us']:.0%}", f"{kernel['tflops']:.0f}" if kernel["tflops"] else ""])
    if not rows:
        return []
    return ["## Kernels of a pass", "",
            "The kernels of a pass by kind, each kind alone: its launches run again as one graph, with the operands that they had. So the shares of",
            "a pass leave out what lies between kernels. A product has its rows, columns and terms, what it does with its sums, and its tile",
            "(`src/cuda/kernels/gemm_tiles.h`).", "", *table(["model", "pass", "kernel", "launches", "us each", "share", "TFLOP/s"], rows)]


def served_lines(data):
    lines = []
    levels = part(data, "throughput").get("levels", [])
    if levels:
        rows = [[level["clients"], level["completed"], f"{level['request_throughput']:.1f}", f"{level['median_ttft_ms']:.1f}", f"{level['p99_ttft_ms']:.1f}"]
                for level in levels]
        lines += ["Requests of 512 tokens for one token, 4B:", "", *table(["clients", "requests", "req/s", "median ms", "p99 ms"], rows)]
    found = part(data, "scoring")
    if found.get("levels"):
        rows = [[level["queries"], level["clients"], level["requests"], f"{level['items_per_s']:.0f}", f"{level['p50_ms']:.1f}", f"{level['p99_ms']:.1f}"]
                for level in found["levels"]]
        lines += [f"Scores, 0.6B: a query of {found['query_tokens']} tokens before each of {found['items']} items of {found['item_tokens']}. The query is",
                  "the request's own, or common to all.", "", *table(["queries", "clients", "requests", "items/s", "median ms", "p99 ms"], rows)]
    servers = part(data, "offload").get("servers", [])
    if servers:
        rows = [["on the host, too" if "--kv-offload-memory" in one["options"] else "on the GPU alone", f"{one['first_ms']:.1f}", f"{one['again_ms']:.1f}",
                 one["cached_tokens"]] for one in servers]
        lines += [f"{part(data, 'offload')['prompts']} prompts of {part(data, 'offload')['prompt_tokens']} tokens in turn, twice, with room for two on the GPU:",
                  "", *table(["KV blocks", "first, ms", "again, ms", "cached tokens"], rows)]
    blocked = part(data, "preemption").get("granularities", [])
    if blocked:
        rows = [[one["granularity"], one["count"], one["stops"], *(f"{one[name]:.2f}" for name in ("mean_ms", "p50_ms", "p99_ms", "max_ms"))] for one in blocked]
        lines += [f"From a signal to standstill, 8B, prompts of {part(data, 'preemption')['prompt_tokens']} tokens:", "",
                  *table(["granularity", "signals", "stops", "mean ms", "p50 ms", "p99 ms", "max ms"], rows)]
    return ["## Served, and stopped", "", *lines] if lines else []


def failure_lines(data):
    failed = [f"`{name}` ({found['error']})" for name, found in data["parts"].items() if "error" in found]
    return ["Parts that did not come to their end: " + "; ".join(failed) + ".", ""] if failed else []


def page(data):
    """The text of the page."""
    return "\n".join([
        "# GPU: measured and predicted", "",
        f"Measured by `{data['command']}` on {data['date']} in {data['seconds']:.0f} s: {data['device']}, driver {data['driver']},",
        f"{data['processors']} processors. Models have random weights in bf16 and real shapes. Written by `tools/gpu_page.py`; how the",
        f"executor works is in [gpu.md](../gpu.md). {data.get('note', '')}".rstrip(), "",
        *failure_lines(data), *target_lines(data), *kernel_lines(data), *identity_lines(data), *product_lines(data), *pass_lines(data), *profile_lines(data), *served_lines(data),
        "## Predicted times", "",
        "**Predicted** by `tools/gpu_roofline.py`, launch by launch: the longer of bytes and operations, against 75 % of the memory's speed",
        "and 45 % of the tensor cores', and at least 3 us a launch, inside a CUDA graph 1.5 us. Both shares and both times are assumptions.",
        "A100: 312 TFLOP/s and 2.04 TB/s. H200: 989 TFLOP/s and 4.8 TB/s.", "",
        *gpu_roofline.lines(), "",
        "## Registers", "",
        "From `ptxas -v` of CUDA 13.0 and 13.5, whichever has more: registers of a thread, in units of 8, and warps that a multiprocessor holds of those that it could. No",
        "kernel spills. The test `cuda_registers` of a build with `CUDA=1` holds later builds to these numbers. `tools/ptxas_table.py --table`",
        "prints them. Tiles of products are (warps, panels of 16 columns for each warp, rows, stages, steps between two barriers).", "",
        ptxas_table.table(json.loads(ptxas_table.COMMITTED.read_text())), ""])


def main():
    data = json.loads(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else DATA).read_text())
    pages.write(PAGE, page(data))
    print(PAGE)


if __name__ == "__main__":
    main()
