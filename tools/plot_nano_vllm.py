#!/usr/bin/env python3
"""Turns the measurements of scripts/exp_nano_vllm into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_nano_vllm.py [NAME]

Reads docs/results/data/NAME.json; writes docs/results/NAME.md and NAME-*.svg. NAME: nano-vllm, or what scripts/exp_nano_vllm
--page named. Nothing is measured here.
"""
import json
import pathlib
import sys

import pages
from charts import load_pyplot, save, table, target, target_of_all, targets_table

OUT = pathlib.Path(__file__).resolve().parent.parent / "docs/results"
PAGE = sys.argv[1] if len(sys.argv) > 1 and __name__ == "__main__" else "nano-vllm"
MIB = 1 << 20


def bound_reasons(control):
    """Explains the estimate, and its distance from the measured ratio."""
    if "joint" not in control["bound"]:
        return []  # an early form of the data
    runs, bound = control["runs"], control["bound"]
    names = ("request-level", "continuous")
    decode_s = {name: bound["seconds"][name] - bound["prompts_s"] for name in names}
    rows_s = bound["costs"]["decode_s"]
    # The ratio is 1.8 where the prompts take (decode_s[0] - 1.8 decode_s[1]) / 0.8.
    prompts_s = (decode_s["request-level"] - 1.8 * decode_s["continuous"]) / 0.8
    prompt_tokens = bound["prompts_s"] / bound["costs"]["prompt_token_s"]
    free = decode_s["request-level"] / decode_s["continuous"]
    expected = (f"About 1.8 times, as was expected before measuring, asks for prompts at {prompt_tokens / prompts_s:,.0f} tokens/s and more; here they"
                f" are computed at {1 / bound['costs']['prompt_token_s']:,.0f}." if prompts_s > 0 else
                "About 1.8 times, as was expected before measuring, is out of reach at these costs even if prompts cost nothing.")
    lines = [f"Why this estimate: the numbers of decode steps are as {bound['steps']['request-level'] / bound['steps']['continuous']:.2f} to 1, their times as"
             f" {free:.2f} to 1. In the further steps of",
             f"request-level few rows are left, and a step costs {1e3 * rows_s['1']:.1f} ms at 1 row,"
             f" {1e3 * rows_s['8']:.1f} ms at 8. The prompts",
             f"take the same {bound['prompts_s']:.2f} s either way, {bound['prompts_s'] / bound['seconds']['continuous']:.0%} of the continuous time, and reduce the"
             f" ratio to {bound['ratio']:.2f}. {expected}", ""]
    counted = [f"{name} took {runs[name]['duration']:.2f} s, and {bound['seconds'][name]:.2f} s are counted" for name in names]
    static, joint = runs["request-level"], bound["joint"]
    return [*lines, f"Estimate and run differ: {counted[0]} (prompts {static['prefill_time']:.2f} for {bound['prompts_s']:.2f} s, decode"
            f" {static['decode_time']:.2f} for {decode_s['request-level']:.2f} s), {counted[1]}.",
            f"The count gives the decode rows of the {joint['steps']} mixed steps a step of their own ({joint['decode_s']:.2f} s in all)."
            " In the run a mixed step reads",
            "the weights once for both, so continuous batching can take less than is counted, and the ratio can exceed the estimate. Request-level has no",
            "mixed steps. Its difference is that of the costs, which were measured at a context of 350 and on lone prompts before and after the",
            "runs, not during them.", ""]


def gains(control):
    """Of continuous over request-level: (times the throughput, of the estimate, times lower median TTFT)."""
    static, continuous = control["runs"]["request-level"], control["runs"]["continuous"]
    ratio = continuous["output_throughput"] / static["output_throughput"]
    return ratio, ratio / control["bound"]["ratio"], static["median_ttft_ms"] / continuous["median_ttft_ms"]


def control_lines(control):
    runs, bound = control["runs"], control["bound"]
    ratio, of_bound, ttft = gains(control)
    lines = table(["preset", "tok/s out", "seconds", "steps", "wasted slots", "TTFT p50 ms", "TTFT p99 ms", "prefill s", "decode s", "mixed s"],
                  [[name, f"{run['output_throughput']:.1f}", f"{run['duration']:.2f}", run["steps"], f"{run['wasted_decode_slots']:,}",
                    f"{run['median_ttft_ms']:.0f}", f"{run['p99_ttft_ms']:.0f}", f"{run['prefill_time']:.2f}", f"{run['decode_time']:.2f}",
                    f"{run['mixed_time']:.2f}"] for name, run in runs.items()])
    costs = ", ".join(f"{1e3 * seconds:.1f} ms at {rows}" for rows, seconds in bound["costs"]["decode_s"].items())
    return [*lines,
            f"The estimate: {bound['steps']['request-level']} decode steps against {bound['steps']['continuous']}; a decode step costs {costs} rows,",
            f"a prompt token {1e6 * bound['costs']['prompt_token_s']:.0f} us ({bound['prompts_s']:.2f} s for all prompts), measured before and after. So",
            f"{bound['seconds']['request-level']:.2f} s against {bound['seconds']['continuous']:.2f} s: the slots would allow **{bound['ratio']:.2f} times**. It is no bound: costs are measured apart from the runs.",
            "",
            f"Reached: **{ratio:.2f} times** the throughput, {of_bound:.0%} of the estimate (target 90 %); median TTFT"
            f" **{ttft:.1f} times** lower (target 3.5).", "", *bound_reasons(control)]


def four_lines(found):
    runs = found["runs"]
    rows = []
    for name, run in runs.items():
        held = found["sequence_bytes"] if "without" in name else run["peak_kv_bytes"]
        rows.append([name, f"{run['output_throughput']:.1f}", f"{run['decode_throughput']:.1f}", f"{run['median_ttft_ms']:.0f}",
                     f"{run['median_tpot_ms']:.1f}", f"{run['p99_itl_ms']:.1f}", f"{held / MIB:.1f}", f"{run['peak_kv_bytes'] / MIB:.1f}"])
    return table(["run", "tok/s out", "decode tok/s", "TTFT p50 ms", "TPOT p50 ms", "ITL p99 ms", "KV held MiB", "KV filled MiB"], rows)


def sweep_lines(found):
    rows = [[each["slots"], f"{each['budget']:,}", f"{run['output_throughput']:.1f}", f"{run['total_token_throughput']:.0f}",
             f"{run['median_ttft_ms']:.0f}", f"{run['p99_ttft_ms']:.0f}", f"{run['median_tpot_ms']:.0f}", f"{run['p99_itl_ms']:.0f}",
             f"{run['peak_kv_bytes'] / MIB:.0f}", run["failed"]] for each in found["runs"] for run in [each["run"]]]
    kind, arrival = found["load"]["requests"][0], found["load"]["arrival"]
    outputs = kind["max_tokens"] if isinstance(kind["max_tokens"], int) else "{} to {}".format(*kind["max_tokens"])
    comes = f"Poisson arrivals at {arrival['rate_per_s']} a second" if arrival["pattern"] == "poisson" else "all there at once"
    return [f"{kind['count']} requests, prompts of {kind['prompt_tokens'][0]:,} to {kind['prompt_tokens'][1]:,} tokens, outputs of {outputs}, {comes}.", "",
            *table(["slots", "budget", "tok/s out", "tok/s all", "TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms", "ITL p99 ms", "peak KV MiB", "failed"], rows)]


def chunks(found):
    return [name for name in found["runs"] if not name.endswith("alone")]


def work(found, name):
    """Both alone over the time in steps of both together."""
    return found["alone_s"] / found["busy_s"][name]


def beside_lines(found):
    runs = found["runs"]
    rows = []
    for name in chunks(found):
        classes = runs[name]["classes"]
        more_s = found["busy_s"][name] - found["alone_s"]
        rows.append([name, runs[name]["steps"], f"{classes['decode']['median_itl_ms']:.1f}", f"{classes['decode']['p99_itl_ms']:.1f}",
                     f"{classes['long']['median_ttft_ms']:.0f}", f"{found['busy_s'][name]:.2f}",
                     f"{work(found, name):.1%}", f"{1e3 * more_s / found['pieces'][name]:+.1f}"])
    alone = runs["decode alone"]
    why = [f"Why small chunks are below: alone, prompt and decodes take {found['runs']['prefill alone']['steps'] + alone['steps']} steps. A chunk of the prompt shares"
           " a step with decodes, so a chunk size with",
           "about as many steps reads the weights about as often as both alone, and only the steps beyond that number read them all once more.",
           "The other cause is the rate of a chunk: a pass of few tokens computes fewer of them a second than one of many, with",
           "decodes beside it or not ([cpu-amx.md](cpu-amx.md): tokens/s by prompt length), and the prompt alone was one pass."]
    if min(work(found, name) for name in chunks(found)) >= 1:
        why = ["Both together take less than alone: a chunk of the prompt shares a step with decodes, which reads the weights once for both."]
    return [*table(["chunk", "steps", "ITL p50 ms", "ITL p99 ms", "TTFT of the prompt ms", "busy s", "work", "ms more, a piece"], rows),
            f"Alone: the prefill {found['busy_s']['prefill alone']:.2f} s, the decodes {found['busy_s']['decode alone']:.2f} s with ITL p50",
            f"{alone['median_itl_ms']:.1f} ms and p99 {alone['p99_itl_ms']:.1f} ms. Work: both alone over the time in steps of both together (target 95 %).", "", *why, "Last column: time beyond both alone over the number of chunks. These runs do not separate its parts from each other or from the machine's",
            "changes meanwhile.", ""]


def eight_times(results):
    eight = results["eight"]["found"]
    return eight["8 at a time"]["decode_throughput"] / eight["1 at a time"]["decode_throughput"]


def controls(results):
    return [results[part]["found"] for part in ("control", "large") if part in results]


def target_lines(results):
    rows = []
    for control in controls(results):
        runs, where = control["runs"], f" ({control['shape']})" if "large" in results else ""
        _, of_bound, ttft = gains(control)
        wasted = tuple(runs[name]["wasted_decode_slots"] for name in ("request-level", "continuous"))
        rows += [target(f"continuous over request-level: at least 0.90 of the estimate{where}", f"{of_bound:.2f}", of_bound >= 0.9),
                 target(f"its median TTFT: at least 3.5 times lower{where}", f"{ttft:.1f} times", ttft >= 3.5),
                 target(f"wasted decode slots: 1,528 and 0{where}", f"{wasted[0]:,} and {wasted[1]:,}", wasted == (1528, 0))]
    speedup, beside = eight_times(results), results["beside"]["found"]
    works = [(f"chunk {name}", work(beside, name)) for name in chunks(beside)]
    return ["## Targets", "", "The verdicts follow from the tables below.", "",
            *targets_table([*rows, target("decode of eight at once: at least 4 times eight in turn", f"{speedup:.2f} times", speedup >= 4),
                            target_of_all("chunked prefill: at least 0.95 of the work of both alone", works, 0.95)])]


def made_by(made):
    processor = f" on {made['processor']}" if made["processor"] else ""
    turns = f"Compared variants took turns, {made['rounds']} times; the run with the median duration counts." if (made["rounds"] or 1) > 1 else \
            "Compared variants ran once each, one after the other."
    return [f"Made by `{made['command']}`{processor}, random weights, without HTTP. {turns}"]


def long_lines(results):
    """The published load; with no such part, none."""
    if "long" not in results:
        return []
    found = results["long"]["found"]
    best = max(found["runs"], key=lambda each: each["run"]["output_throughput"])
    alone = next(each for each in found["runs"] if each["slots"] == 1)
    ratio = best["run"]["output_throughput"] / alone["run"]["output_throughput"]
    return ["## Long prompts and outputs, in int8", "", *made_by(results["long"]), "", *sweep_lines(found),
            f"The most output tokens/s, with {best['slots']} slots and a budget of {best['budget']:,}, are {ratio:.2f} times those of one request after the other.", ""]


def page(results, plots):
    eight = results["eight"]["found"]
    speedup = eight_times(results)
    lines = ["# nano-vLLM's experiments", "", *made_by(results["control"]), "Sections that another command made name it.",
             "TTFT of `request-level` ends with its batch, which delivers its results only then.", "", *target_lines(results)]
    for part in ("control", "large"):
        if part not in results:
            continue
        lines += [f"## Request-level against continuous, {results[part]['found']['shape']}", "",
                  *([*made_by(results[part]), ""] if results[part]["command"] != results["control"]["command"] else []),
                  "20 requests: prompts of 128, 256, 384, 512 in turn, outputs of 24, 24, 24, 96, 24, 24, 24, 128; 8 slots. Published, on a",
                  "GPU: 4.7 times the throughput and 15.7 times lower TTFT; Qwen2.5-3B: 2.73 and 6.04.", "", *control_lines(results[part]["found"])]
    runs = results["runs"]["found"]
    lines += ["## The four runs", "",
              "Six requests: prompts of 72, 6, 79, 8, 74, 8, outputs of 30, 50, 30, 40, 20, 40. Without paging a sequence holds the memory of the",
              f"longest one allowed ({runs['max_model_len']} tokens here, where none reaches 110) for any length; the blocks of a head then follow",
              "one another.", "",
              *four_lines(runs),
              "## Eight at once against eight in turn", "", *table(
                  ["batch", "decode tok/s", "decode s"],
                  [[name, f"{run['decode_throughput']:.1f}", f"{run['decode_time']:.2f}"] for name, run in eight.items()]),
              f"In decode the batch is **{speedup:.2f} times** as fast (target 4).", "",
              "## Slots and budgets", "", *sweep_lines(results["sweep"]["found"]), *long_lines(results),
              "## Decode beside a prefill of 4,096 tokens", "",
              "Four sequences decode 80 tokens each; the prompt arrives a second after them. Over the chunk size (the token budget of a step):", "",
              *beside_lines(results["beside"]["found"])]
    for plot in plots:
        lines += [f"![{plot}]({plot})", ""]
    return "\n".join(lines)


def draw(results):
    pyplot = load_pyplot()
    if pyplot is None:
        return []
    plots = []
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5))
    runs, bound = results["control"]["found"]["runs"], results["control"]["found"]["bound"]
    base = runs["request-level"]["output_throughput"]
    axes[0].bar(list(runs), [run["output_throughput"] for run in runs.values()])
    axes[0].axhline(base * bound["ratio"], color="black", linestyle="--", label="the estimate")
    axes[0].set_ylabel("output tokens per second")
    axes[0].legend()
    axes[1].bar(list(runs), [run["median_ttft_ms"] / 1e3 for run in runs.values()])
    axes[1].set_ylabel("median TTFT, s")
    plots.append(save(figure, OUT / f"{PAGE}-control.svg"))
    found = results["beside"]["found"]
    names = chunks(found)
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5))
    axes[0].plot(names, [found["runs"][name]["classes"]["decode"]["p99_itl_ms"] for name in names], marker="o", label="p99")
    axes[0].plot(names, [found["runs"][name]["classes"]["decode"]["median_itl_ms"] for name in names], marker="o", label="median")
    axes[0].axhline(found["runs"]["decode alone"]["p99_itl_ms"], color="black", linestyle="--", label="p99 alone")
    axes[0].set_yscale("log")
    axes[0].set_xlabel("chunk, tokens")
    axes[0].set_ylabel("inter-token latency, ms")
    axes[0].legend()
    axes[1].plot(names, [100 * work(found, name) for name in names], marker="o")
    axes[1].axhline(95, color="black", linestyle="--", label="target")
    axes[1].set_xlabel("chunk, tokens")
    axes[1].set_ylabel("work, % of both alone")
    axes[1].legend()
    plots.append(save(figure, OUT / f"{PAGE}-chunks.svg"))
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5))
    names = [f"{each['slots']} / {each['budget']}" for each in results["sweep"]["found"]["runs"]]
    axes[0].bar(names, [each["run"]["output_throughput"] for each in results["sweep"]["found"]["runs"]])
    axes[0].set_ylabel("output tokens per second")
    axes[1].bar(names, [each["run"]["median_ttft_ms"] / 1e3 for each in results["sweep"]["found"]["runs"]])
    axes[1].set_ylabel("median TTFT, s")
    for axis in axes:
        axis.set_xlabel("slots / budget")
        axis.tick_params(axis="x", labelrotation=30)
    plots.append(save(figure, OUT / f"{PAGE}-sweep.svg"))
    return plots


def main():
    results = json.loads((OUT / f"data/{PAGE}.json").read_text())
    pages.write(OUT / f"{PAGE}.md", page(results, draw(results)))
    print(f"wrote {OUT / PAGE}.md")


if __name__ == "__main__":
    main()
