#!/usr/bin/env python3
"""Turns the measurements of scripts/bench_cpu into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_cpu.py NAME

Reads docs/results/data/NAME-*.json; writes docs/results/NAME.md and NAME-*.svg. NAME: what scripts/bench_cpu --page was
given. Nothing is measured here.
"""
import json
import pathlib
import sys

import pages
from charts import load_pyplot, save, table, target, target_of_all, targets_table

OUT = pathlib.Path(__file__).resolve().parent.parent / "docs/results"
FORCED = ("avx512-bf16", "avx512-bf16-fma", "avx512", "avx2")
SKEIN = {"skein bf16": "forward", "skein int8": "int8", "skein q8_0": "q8_0", "skein int4": "int4"}  # the files of Skein's runs beside other engines
OF_BITS = {16: "skein bf16", 8: "skein int8", 4: "skein int4"}
OF_BLOCKS = {8: "skein q8_0", 4: "skein int4"}  # beside engines whose weights have a scale for each block of 32
PAGE = sys.argv[1] if __name__ == "__main__" else None


def path_of(name):
    return OUT / f"data/{PAGE}-{name}.json"


def load(name):
    return json.loads(path_of(name).read_text())


def limits_line(report):
    limits = report["limits"]
    return f"Limits in this run (medians): {limits['compute_tflops']:.2f} TFLOP/s, {limits['read_gbps']:.1f} GB/s read."


def forward_tables(report):
    return [*table(["prompt tokens", "tokens/s", "TFLOP/s", "fraction"],
                   [[p["prompt_tokens"], f"{p['tokens_per_s']:.0f}", f"{p['tflops']:.3f}", f"{p['fraction']:.2f}"] for p in report["prefill"]]),
            *table(["sequences that decode", "context", "tokens/s", "GB/s", "fraction"],
                   [[p["batch"], p["context"], f"{p['tokens_per_s']:.1f}", f"{p['gbps']:.1f}", f"{p['fraction']:.2f}"] for p in report["decode"]])]


def step_bytes(point):
    """What one decode step reads at least: all weights once, the keys and values of each sequence."""
    return point["gbps"] * 1e9 * point["batch"] / point["tokens_per_s"]


def stream_gain(report):
    """Of 16 sequences over one: the two points, what was reached and what the limits allow; None if not measured."""
    by_batch = {point["batch"]: point for point in report["decode"]}
    if not {1, 16} <= by_batch.keys():
        return None
    one, many = by_batch[1], by_batch[16]
    sequence = (step_bytes(many) - step_bytes(one)) / 15
    weights = step_bytes(one) - sequence

    def least_s(point):  # a weight of two bytes is multiplied and added for each sequence: as many operations as bytes
        limits = report["limits"]
        return max(step_bytes(point) / (limits["read_gbps"] * 1e9), weights * point["batch"] / (limits["compute_tflops"] * 1e12))

    return {"one": one, "many": many, "weights": weights, "sequence": sequence, "gain": many["tokens_per_s"] / one["tokens_per_s"],
            "bound": 16 * least_s(one) / least_s(many)}


def stream_lines(data):
    found = [gain for gain in (stream_gain(data["forward"]), stream_gain(data["context"])) if gain]
    rows = [[gain["one"]["context"], f"{gain['one']['tokens_per_s']:.1f}", f"{gain['many']['tokens_per_s']:.1f}", f"{gain['weights'] / 1e6:,.0f}",
             f"{gain['sequence'] / 1e6:.1f}", f"{gain['gain']:.1f}", f"{gain['bound']:.1f}", f"{gain['gain'] / gain['bound']:.0%}"] for gain in found]
    return ["## Sixteen streams over one", "", f"    {data['context']['command']}", "",
            "The context of 128 is of the run above, that of 1,024 of this one. The bound is 16 times the least time of a step of one sequence",
            "over the least time of a step of 16. Least time: the bytes of a step at the read bandwidth, or its products at the peak rate if",
            "that takes longer (the operations of attention are left out, so the bound is rather too high). A step reads all weights once,",
            "the output matrix among them, and for each sequence its keys and values, counted in the middle of the measured steps.", "",
            *table(["context", "one, tokens/s", "16, tokens/s", "weights MB", "a sequence MB", "16 over one", "bound", "of the bound"], rows)]


def onednn_target(gemm):
    peers = [(f"{row['model']} {row['name']}, {row['m']} rows", row["tflops"] / row["onednn_tflops"]) for row in gemm if row.get("onednn_tflops")]
    return target_of_all("no product slower than oneDNN (1 time its speed)", peers, 1.0)


def product_fractions(gemm, low):
    return [(f"{row['model']} {row['name']}, {row['m']} rows", row["fraction"]) for row in gemm if low <= row["m"]]


def lone_targets(reports):
    rows = []
    for name, words in (("token", "read to a token"), ("labels", "read to two labels")):
        reads = [report["reads"][name] for report in reports if report["tokens"] == 128]
        over, outside = (reads[0]["over_floor"], reads[0]["outside_ms"]) if reads else (None, None)
        rows += [target(f"lone prompt of 128 tokens, {words}: at most 1.35 times the floor", reads and f"{over:.2f}", over <= 1.35 if reads else None),
                 target("the same: at most 0.5 ms outside the forward pass", reads and f"{outside:.2f} ms", outside <= 0.5 if reads else None)]
    return rows


def engine_ratios(data):
    """[(cell, Skein's speed over the engine's, the same if Skein reached its limits)] of every cell that both have, at
    equal precision."""
    ratios = []
    for name, report in data["peers"]["peers"].items():
        for kind, key, words in (("prefill", "prompt_tokens", "prompt of {}"), ("decode", "batch", "batch of {}")):
            theirs = {p[key]: p["tokens_per_s"] for p in report[kind]}
            for p in rival_of(data, name)[1][kind]:
                if p[key] in theirs:
                    ratio = p["tokens_per_s"] / theirs[p[key]]
                    ratios.append((f"{name}, {words.format(p[key])}", ratio, ratio / min(p["fraction"], 1)))
    return ratios


def target_lines(data):
    def fractions(kind, key, size, reports):
        return [(name, p["fraction"]) for name, report in reports.items() for p in report[kind] if p[key] == size]

    gemm = data["kernels"]["gemm"]
    cells = engine_ratios(data)
    ratios = [cell[:2] for cell in cells]
    short = [f"{name}: {ratio:.2f} ({most:.2f})" for name, ratio, most in cells if ratio < 1.5]
    gain = stream_gain(data["forward"])
    rows = [target_of_all("products in bf16 of 128 rows and more: at least 0.80 of the peak", product_fractions(gemm, 128), 0.80),
            onednn_target(gemm),
            target_of_all("prompt of 512 tokens: at least 0.70 of the peak", fractions("prefill", "prompt_tokens", 512, of_skein(data)), 0.70),
            target_of_all("prompt of 2,048 tokens in bf16: at least 0.65 of the peak", fractions("prefill", "prompt_tokens", 2048, {"skein bf16": data["forward"]}), 0.65),
            target_of_all("decode of one sequence: at least 0.85 of the read bandwidth", fractions("decode", "batch", 1, of_skein(data)), 0.85),
            target("decode of 16 sequences, context 128: at least 10 times one", gain and f"{gain['gain']:.1f} times (bound {gain['bound']:.1f})",
                   gain["gain"] >= 10 if gain else None),
            *lone_targets(data["lone"]["reports"]),
            target_of_all("no engine faster at equal precision (1 time its speed)", ratios, 1.0),
            target_of_all("the same: at least 1.5 times", ratios, 1.5), *start_targets(data)]
    bounds = [f"Cells below 1.5, and in brackets what they would be if Skein reached its limits: {'; '.join(short)}.", ""] if short else []
    return ["## Targets", "", "The verdicts follow from the tables below, as they stand.", "", *targets_table(rows), *bounds]


def of_skein(data):
    """{name: report} of Skein."""
    return {name: data[file] for name, file in SKEIN.items() if file in data}


def engines(data):
    """{name: report}: Skein first."""
    return {**of_skein(data), **data["peers"]["peers"]}


def rival_of(data, peer):
    """(name, report) of Skein with weights in as many bits as the peer's, and in blocks like its own if Skein ran so; in bf16 if it ran in neither."""
    report, found = data["peers"]["peers"][peer], of_skein(data)
    bits = report.get("bits", 8 if peer == "llama-q8_0" else 16)  # older runs do not say it
    names = [OF_BLOCKS.get(bits) if report.get("blocks") else None, OF_BITS[bits], "skein bf16"]
    return next((name, found[name]) for name in names if name in found)


def peer_lines(data):
    found = engines(data)
    if len(found) == 1 and not data["peers"]["skipped"]:
        return []
    lines = ["## Beside other engines", "",
             "The same shape, weights and thread number; whole prompts to the first logits, and decode steps of a batch. Engines took turns",
             "in one run. VENV is an environment that has the engine.", "",
             *(f"    {report['command']}" for report in [data[part] for part in ("int8", "q8_0", "int4") if part in data] + list(data["peers"]["peers"].values())),
             ""]
    for name, report in data["peers"]["peers"].items():
        lines.append(f"- **{name}**: {report['version']}; {report['note']}.")
    for name, reason in data["peers"]["skipped"].items():
        lines.append(f"- **{name}**: not measured: {reason}.")
    lines.append("")
    for kind, key, title in (("prefill", "prompt_tokens", "prompt tokens/s by length"), ("decode", "batch", "decoded tokens/s by batch")):
        rows = [[name, *(f"{p['tokens_per_s']:.1f}" for p in report[kind])] for name, report in found.items()]
        for name, report in data["peers"]["peers"].items():
            rival, its = rival_of(data, name)
            rows.append([f"{rival} over {name}", *(f"{ours['tokens_per_s'] / p['tokens_per_s']:.1f}" for ours, p in zip(its[kind], report[kind]))])
        lines += table([title, *(str(p[key]) for p in data["forward"][kind])], rows)
    return lines + start_lines(data)


def start_lines(data):
    """Loading and memory of the engines, where the runs have them."""
    found = {name: report for name, report in engines(data).items() if "load_s" in report}
    if not found:
        return []
    rows = [[name, f"{report['load_s']:.2f}", f"{report['resident_mib']:,.0f}"] for name, report in found.items()]
    return ["Loading: from files that the system has cached, without the import of packages and conversions. Skein rounds weights to 8 and 4",
            "bits while it loads; the others read files that have them, and llama.cpp maps its file, to read it with the first prompt. Memory:",
            "what the process has taken since before loading, behind a first prompt; mapped files count.", "", *table(["engine", "load, s", "memory, MiB"], rows)]


def start_targets(data):
    """Loading and memory beside each engine, at equal precision."""
    def ratios(key):
        return [(name, report[key] / rival_of(data, name)[1][key]) for name, report in data["peers"]["peers"].items() if key in report]

    return [target_of_all("loading no slower than any engine (ratio 1)", ratios("load_s"), 1.0),
            target_of_all("memory no more than any engine's (ratio 1)", ratios("resident_mib"), 1.0)]


def lone_lines(lone):
    reports = lone["reports"]
    note = [lone["note"], ""] if "note" in lone else []
    rows = [[report["tokens"], {"token": "a token", "labels": "two labels"}[name], *(f"{read[key]:.1f}" for key in ("ms", "floor_ms", "sum_ms")),
             f"{read['over_floor']:.2f}", f"{read['over_sum']:.2f}", f"{read['outside_ms']:.2f}"]
            for report in reports for name, read in report["reads"].items()]
    return ["## A lone prompt over HTTP", "", *(f"    {report['command']}" for report in reports), "",
            "From sending the request to the last byte of the answer, on a kept connection, nothing cached; medians. Floor: the least time by the limits",
            "measured before and after: the layers' products computed or their weights read, whichever takes longer, and for a token the",
            "output matrix read. The sum: computed and then read. Outside: the time outside the server's forward passes.", "", *note,
            f"Limits in this run (medians): {reports[-1]['limits']['compute_tflops']:.2f} TFLOP/s, {reports[-1]['limits']['read_gbps']:.1f} GB/s read.", "",
            *table(["prompt tokens", "read", "ms", "floor ms", "sum ms", "times the floor", "times the sum", "outside ms"], rows)]


def kernel_rows(gemm):
    for row in gemm:
        peer = row.get("onednn_tflops") or 0
        yield [f"{row['model']} {row['name']}", row["m"], row["k"], row["n"], f"{row['tflops']:.3f}", f"{row['gbps']:.1f}",
               f"{row['fraction']:.2f}", f"{peer:.3f}"]


def forced_lines(isa, data):
    lines = [f"## Without the matrix unit: {isa}", ""]
    if isa not in data:
        return [*lines, f"Not measured: {data['run']['skipped'][isa]}.", ""]
    note = [data[isa]["note"], ""] if "note" in data[isa] else []
    return [*lines, f"    {data[isa]['command']}", "", *note, limits_line(data[isa]), "", *forward_tables(data[isa])]


def ablation_lines(data):
    lines = ["## The cost of the numeric contract", ""]
    if "ablation" not in data:
        return [*lines, f"Not measured: {data['run']['skipped']['ablation']}.", ""]
    found = data["ablation"]
    one = table(["product, one row", "engine GB/s", "AVX-512 GB/s", "cost", "outputs whose bits differ"],
                [[row["name"], f"{row['engine_gbps']:.1f}", f"{row['avx512_gbps']:.1f}", f"{row['cost']:+.1%}", f"{row['bits_differ']:.0%}"]
                 for row in found["one_row"]])
    attention = table(["sequences, their tokens", "engine us", "whole walks us", "variable splits us", "cost", "outputs whose bits differ"],
                      [[row["name"], f"{row['engine_us']:.1f}", f"{row['whole_us']:.1f}", f"{row['split_us']:.1f}", f"{row['cost']:+.1%}",
                        f"{row['bits_differ']:.0%}"] for row in found["attention"]])
    return [*lines, f"    {found['command']}", "",
            "Benchmark code (`bench/ablation_bench.cc`) removes two rules, each alone. One row goes through the matrix unit as ten",
            "thousand do; beside it stands an AVX-512 product over the same packed weights. Cost: the time that the rule adds.", "", *one,
            "Attention is cut at absolute positions only; beside it all keys are cut into equal parts for the threads, at any position, and",
            "merged. A decode step of one layer of Qwen3-0.6B. Both cuts run one AVX-512 walk, so their ratio is the cost of the rule; the",
            "engine's own kernel stands beside them. Bits: between the cuts for two and for three threads.", "", *attention]


def onednn_lines(data):
    """The types of oneDNN's figures; nothing where there are none."""
    types = sorted({row.get("onednn_dtype", "bf16") for row in data["kernels"]["gemm"] if row.get("onednn_tflops")})
    if not types:
        return []
    return [f"oneDNN runs in turn with each product, in {' and '.join(types)} with f32 results of all columns. That is",
            "more to write than Skein has for two products: gate_up ends in half the columns, in bf16, and qkv in memory of each thread that",
            "stays in its cache."]


def told_date(run):
    """The date of runs that have kept it."""
    return f", {run['date']}" if "date" in run else ""


def page(data, plots):
    run = data["run"]
    lines = ["# The processor", "",
             f"Written by `{run['command']}` on {run['processor']}, {run['threads']} threads{told_date(run)}. Fraction: the share of the speed that the limits",
             "measured beside each sample allow (computing or reading, whichever takes longer). The machine is shared, and its limits change",
             "within seconds: above 1 they changed meanwhile.", *onednn_lines(data),
             "Commands stand without `--json FILE`. Forward passes, and those of other engines, ran",
             f"{run['rounds']} times in turn: the medians count." if run["rounds"] > 1 else "once in turn.", "", *target_lines(data),
             "## Forward passes", "", f"    {data['forward']['command']}", "", limits_line(data["forward"]), "", *forward_tables(data["forward"]),
             *stream_lines(data), *peer_lines(data), *lone_lines(data["lone"])]
    for isa in FORCED:
        lines += forced_lines(isa, data)
    lines += ["## Matrix products", "", f"    {data['kernels']['command']}", "", limits_line(data["kernels"]), "", *table(
        ["product", "m", "k", "n", "TFLOP/s", "GB/s", "fraction", "oneDNN TFLOP/s"], kernel_rows(data["kernels"]["gemm"]))]
    if "draws" in data["kernels"]:
        lines += ["## Draws", "", "One token of a vocabulary of 151,936, on one thread, by the same command. Peaked: 40 logits high above a normal",
                  "distribution, like most of a model's rows; flat: without them.", "", *table(
                      ["logits", "parameters", "us"], [[row["logits"], row["parameters"], f"{row['us']:.1f}"] for row in data["kernels"]["draws"]])]
    lines += ablation_lines(data)
    for plot in plots:
        lines += [f"![{plot}]({plot})", ""]
    return "\n".join(lines)


def draw_roofline(pyplot, report):
    limits = report["limits"]
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    edge = 1e3 * limits["compute_tflops"] / limits["read_gbps"]
    axes.plot([1, edge, 4096], [limits["read_gbps"] / 1e3, limits["compute_tflops"], limits["compute_tflops"]], color="black", label="limits of this run")
    for model in sorted({row["model"] for row in report["gemm"]}):
        rows = [row for row in report["gemm"] if row["model"] == model]
        # Of weights read in bf16: 2 m n k operations on 2 n k bytes.
        axes.scatter([row["m"] for row in rows], [row["tflops"] for row in rows], s=16, label=model)
        peers = [row for row in rows if row.get("onednn_tflops")]
        axes.scatter([row["m"] for row in peers], [row["onednn_tflops"] for row in peers], s=16, marker="x", label=f"{model}, oneDNN")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte of weights (the rows of the product)")
    axes.set_ylabel("TFLOP/s")
    axes.legend()
    return save(figure, OUT / f"{PAGE}-roofline.svg")


def draw_engines(pyplot, data, kind, key, figure_of, labels, name):
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for engine, report in engines(data).items():
        axes.plot([p[key] for p in report[kind]], [figure_of(p) for p in report[kind]], marker="o", label=engine)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend()
    return save(figure, OUT / name)


def draw(data):
    pyplot = load_pyplot()
    if pyplot is None:
        return []
    return [draw_roofline(pyplot, data["kernels"]),
            draw_engines(pyplot, data, "decode", "batch", lambda p: p["tokens_per_s"], ("sequences that decode", "tokens per second"), f"{PAGE}-batch.svg"),
            draw_engines(pyplot, data, "prefill", "prompt_tokens", lambda p: 1e3 * p["prompt_tokens"] / p["tokens_per_s"],
                         ("prompt tokens", "milliseconds to the first logits"), f"{PAGE}-latency.svg")]


def main():
    run = load("run")
    data = {"run": run, **{name: load(name) for name in ("forward", "int8", "q8_0", "int4", "context", "peers", "lone", "kernels", "ablation", *FORCED)
                           if name not in run.get("skipped", {}) and (name not in ("int8", "q8_0", "int4") or path_of(name).exists())}}
    pages.write(OUT / f"{PAGE}.md", page(data, draw(data)))
    print(f"wrote {OUT / f'{PAGE}.md'}")


if __name__ == "__main__":
    main()
