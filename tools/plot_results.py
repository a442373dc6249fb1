#!/usr/bin/env python3
"""Turns the results of scripts/bench into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_results.py [DIR]        # default: docs/results

Reads DIR/data: commands.txt (name, tab, command), machine.txt and NAME.json of each name; writes DIR/main.md and
DIR/*.svg. Nothing is measured here: the page can be written anew from the same data at any time.
"""
import json
import pathlib
import sys

import pages

OFFLINE_COLUMNS = [
    ("completed", "completed", "{:d}"),
    ("failed", "failed", "{:d}"),
    ("req/s", "request_throughput", "{:.2f}"),
    ("tok/s", "total_token_throughput", "{:.1f}"),
    ("prefill tok/s", "prefill_throughput", "{:.1f}"),
    ("decode tok/s", "decode_throughput", "{:.1f}"),
    ("prefill s", "prefill_time", "{:.2f}"),
    ("decode s", "decode_time", "{:.2f}"),
    ("mixed s", "mixed_time", "{:.2f}"),
    ("TTFT p50 ms", "median_ttft_ms", "{:.1f}"),
    ("TTFT p99 ms", "p99_ttft_ms", "{:.1f}"),
    ("TPOT p50 ms", "median_tpot_ms", "{:.2f}"),
    ("peak KV MiB", "peak_kv_mib", "{:.2f}"),
    ("wasted slots", "wasted_decode_slots", "{:d}"),
]
SERVE_COLUMNS = [
    ("completed", "completed", "{:d}"),
    ("failed", "failed", "{:d}"),
    ("not sent", "num_not_sent", "{:d}"),
    ("req/s", "request_throughput", "{:.2f}"),
    ("goodput req/s", "request_goodput", "{:.2f}"),
    ("output tok/s", "output_throughput", "{:.1f}"),
    ("total tok/s", "total_token_throughput", "{:.1f}"),
    ("cached tokens", "total_cached_tokens", "{:d}"),
    ("TTFT p50 ms", "median_ttft_ms", "{:.1f}"),
    ("TTFT p99 ms", "p99_ttft_ms", "{:.1f}"),
    ("TPOT p50 ms", "median_tpot_ms", "{:.2f}"),
    ("ITL p99 ms", "p99_itl_ms", "{:.2f}"),
    ("E2EL p99 ms", "p99_e2el_ms", "{:.1f}"),
]


def read_pairs(path):
    return [line.split("\t", 1) for line in path.read_text().splitlines() if "\t" in line]


def table(heading, columns, rows):
    """rows: (name, result). An absent or null figure is a dash."""
    lines = ["| " + " | ".join([heading, *(title for title, _, _ in columns)]) + " |",
             "|---" + "|---:" * len(columns) + "|"]
    for name, result in rows:
        cells = [form.format(result[key]) if result.get(key) is not None else "-" for _, key, form in columns]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def with_mib(scenario):
    return {**scenario, "peak_kv_mib": scenario["peak_kv_bytes"] / 2**20}


def section(name, command, result):
    lines = [f"## {name}", "", f"    {command}", ""]
    if "startup_s" in result:
        lines += ["| start to first answered request | s |", "|---|---:|",
                  f"| median | {result['median_startup_s']:.2f} |",
                  f"| each | {', '.join(f'{s:.2f}' for s in result['startup_s'])} |"]
    elif "scenarios" in result:
        lines += table("scenario", OFFLINE_COLUMNS, [(s["name"], with_mib(s)) for s in result["scenarios"]])
        clipped = {s["name"]: s["num_clipped"] for s in result["scenarios"] if s["num_clipped"]}
        if clipped:
            listed = ", ".join(f"{key} {value}" for key, value in clipped.items())
            lines += ["", f"Requests shortened to fit the model's context: {listed}."]
    else:
        rows = [("all", result)]
        if len(result["classes"]) > 1:
            rows += list(result["classes"].items())
        lines += table("class", SERVE_COLUMNS, rows)
    return lines + [""]


def page(results, machine, plots):
    lines = ["# Results", "",
             "Written by `make bench` (`scripts/bench`) from the files in `data/`. Weights are random: the times are those of a",
             "model of that shape, the texts are noise. TTFT counts from the moment a request is due; TPOT is (E2EL - TTFT) /",
             "(tokens - 1). Prefill and decode tokens/s both count mixed steps, so they are lower bounds if there are any.",
             "A request that a time limit ended has failed.", ""]
    lines += ["| machine | |", "|---|---|", *(f"| {key} | {value} |" for key, value in machine), ""]
    for name, command, result in results:
        lines += section(name, command, result)
    for plot in plots:
        lines += [f"![{plot.stem}]({plot.name})", ""]
    return "\n".join(lines)


def draw(results, out):
    """One plot per offline run (throughput by scenario) and one of all serving runs (latencies)."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed (tools/requirements-plots.txt): no plots")
        return []
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "skein"  # the same data gives the same file
    from matplotlib import pyplot

    plots = []

    def save(figure, name):
        figure.tight_layout()
        figure.savefig(out / name, metadata={"Date": None})
        pyplot.close(figure)
        plots.append(out / name)

    for name, _, result in results:
        if "scenarios" not in result:
            continue
        figure, axes = pyplot.subplots(figsize=(8, 4))
        names = [s["name"] for s in result["scenarios"]]
        for offset, key, label in ((-0.2, "prefill_throughput", "prefill"), (0.2, "decode_throughput", "decode")):
            axes.barh([i + offset for i in range(len(names))], [s[key] for s in result["scenarios"]], 0.4, label=label)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("tokens per second")
        axes.set_title(name)
        axes.legend()
        save(figure, f"{name}.svg")
    serving = [(name, result) for name, _, result in results if "median_ttft_ms" in result]
    if serving:
        figure, axes = pyplot.subplots(figsize=(8, 1 + 0.5 * len(serving)))
        for offset, key, label in ((-0.2, "median_ttft_ms", "median TTFT"), (0.2, "p99_ttft_ms", "p99 TTFT")):
            axes.barh([i + offset for i in range(len(serving))], [r[key] for _, r in serving], 0.4, label=label)
        axes.set_yticks(range(len(serving)), [name for name, _ in serving])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("milliseconds")
        axes.legend()
        save(figure, "serve-ttft.svg")
    return plots


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    data = out / "data"
    results = [(name, command, json.loads((data / f"{name}.json").read_text()))
               for name, command in read_pairs(data / "commands.txt")]
    if not results:
        sys.exit(f"{data / 'commands.txt'} names no results")
    plots = draw(results, out)
    pages.write(out / "main.md", page(results, read_pairs(data / "machine.txt"), plots))
    print(f"wrote {out / 'main.md'}" + "".join(f", {plot}" for plot in plots))


if __name__ == "__main__":
    main()
