#!/usr/bin/env python3
"""Turns the measurements of scripts/exp_feather into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_feather.py

Reads docs/results/data/feather.json; writes docs/results/feather.md and feather-*.svg. Nothing is measured here.
"""
import collections
import json
import math
import pathlib

import pages
from charts import load_pyplot, save, table

OUT = pathlib.Path(__file__).resolve().parent.parent / "docs/results"
KV_BYTES = 114688  # of a token of Qwen3-0.6B: 28 layers, 8 heads of 128, K and V in bf16
DEVICES = {"rtx-6000-ada": "RTX 6000 Ada", "a100-80-sxm": "A100 80 GB"}
PUBLISHED = {"insert_ns": 153700, "add_ns": 11100, "finish_ns": 39000, "find_best_ns": 6600}
PUBLISHED_ROUNDS = {20000: "about 1,000"}  # of the others over the hash tree, by prefix tokens
TARGETS = {"insert_ns": 15000, "add_ns": 3000, "finish_ns": 3000, "find_best_ns": 1000}


def verdict(reached):
    return "reached" if reached else "**missed**"


def control_of(unshared):
    """Where nothing is shared fill does the same work with either attention: the ratio that is measured, and how far it is off 1."""
    ratio = unshared["fill, shared"]["tokens_per_s"] / unshared["fill, plain"]["tokens_per_s"]
    return ratio, 1 - min(ratio, 1 / ratio)


def verdict_beside_fill(ratio, noise):
    return verdict(ratio >= 0.98) + (", within noise" if ratio < 0.98 and 1 - ratio < noise else "")


def made_by(part):
    where = f" on {part['machine']}" if "machine" in part else ""
    return [f"Made by `{part['command']}` in {part['seconds']} s{where}.", ""]


def sched_section(part):
    found = part["found"]
    tree = found["tree"]
    names = {"hash_ns": "hash a prompt", "insert_ns": "insert", "add_ns": "add to batch", "finish_ns": "finish", "find_best_ns": "find best"}
    lines = ["## The cost of an operation", "", *made_by(part),
             f"`skein bench sched`: {tree['requests']:,} requests of {tree['tokens']:,} tokens in {tree['groups']} groups with suffixes of {tree['suffix_tokens']} tokens of their own, chunks of a KV",
             f"block ({tree['chunk_tokens']} tokens), {tree['batch']} in the batch; means, CPU time of the thread. Hashing is one pass over the prompt that the prefix",
             "cache needs anyway.", "",
             *table(["", "ns", "target", "", "published"],
                    [[name, f"{tree[key]:.0f}", f"{TARGETS[key]:,}" if key in TARGETS else "", verdict(tree[key] <= TARGETS[key]) if key in TARGETS else "",
                      f"{PUBLISHED[key]:,}" if key in PUBLISHED else ""] for key, name in names.items()]),
             "### Chunk sizes", "", "Vectors of their own for each size, fewer requests; streaming: one hash read at each chunk's end; chained: each chunk",
             "hashed alone, then a chain.", "",
             *table(["construction", "chunk", "hash ns", "insert ns", "add ns", "finish ns", "find ns"],
                    [[row["construction"], row["chunk_tokens"], *(f"{row[key]:.0f}" for key in names)] for row in found["chunks"]])]
    rounds = collections.defaultdict(dict)
    for row in found["overhead"]:
        rounds[row["prefix_tokens"]][row["policy"]] = row["us_per_round"]
    policies = list(next(iter(rounds.values())))
    others = ("lpm", "dfs-weight")
    lines += ["### A round beside other structures", "",
              f"One request of the batch is replaced while {found['overhead'][0]['waiting']} wait, us. `lpm` and `dfs-weight` order the whole queue over a radix tree, token",
              "by token (plain C++ here, memory compared 256 tokens at a time); `prefix-homogeneous-radix` makes prefix-homogeneous's choice over such a tree;",
              "`prefix-homogeneous` hashes and inserts the new request, finishes one, finds and adds the best. Learned rules over the radix tree make the same plans",
              "as over the hashes (a test compares them step by step, `SchedulerBaselines.TheRadixTreeGivesTheSamePlans`), so only this cost differs.", "",
              *table(["prefix tokens", *policies, *(f"{other} / prefix-homogeneous" for other in others), "published"],
                     [[tokens, *(f"{us[policy]:.1f}" for policy in policies), *(f"{us[other] / us['prefix-homogeneous']:.0f}" for other in others),
                       PUBLISHED_ROUNDS.get(tokens, "")] for tokens, us in rounds.items()]),
              "Published: by the text's own measurements of such policies, which were not run here.", "",
              "### Whole rounds, by order and queue", "", "Planning a step and taking in its results, preset `prefill-only`: prompts of 257 to 330 tokens in groups, the cache changes in",
              "nearly every round; us.", "",
              *table(["order", "waiting", "mean", "p99"], [[row["order"], f"{row['waiting']:,}", f"{row['us_per_round']:.1f}", f"{row['p99_us']:.1f}"] for row in found["rounds"]])]
    return lines


def here_table(runs):
    base = next(iter(runs.values()))["tokens_per_s"]
    rows = []
    for name, run in runs.items():
        gib = [run[key] * KV_BYTES / 1e9 for key in ("kv_tokens_asked", "kv_tokens_unique")]
        spread = f"{min(run['runs']):.1f}-{max(run['runs']):.1f}" if len(run["runs"]) > 1 else ""
        rows.append([name, f"{run['tokens_per_s']:.1f}", len(run["runs"]), spread, f"{run['tokens_per_s'] / base:.2f}", f"{run['step_ms']:.0f}", f"{run['tpot_ms']:.0f}", f"{run['itl_p99_ms']:.0f}",
                     f"{run['p95_ttft_ms'] / 1e3:.1f}", f"{run['batch']:.1f}", *(f"{g:.2f}" for g in gib), f"{100 * run['scheduler_share']:.3f}"])
    return table(["decode set, attention", "tok/s", "passes", "least-most", "to the first", "step ms", "TPOT p50 ms", "ITL p99 ms", "TTFT p95 s", "mean batch", "GB asked", "GB unique",
                  "scheduling %"], rows)


def best_line(runs, noise):
    """Whether prefix-homogeneous with shared-prefix attention is the best of all systems of a load."""
    both = {name: run["tokens_per_s"] for name, run in runs.items() if name.startswith("prefix-homogeneous") and name.endswith("shared")}
    rest = {name: run["tokens_per_s"] for name, run in runs.items() if name not in both}
    one, other = max(both, key=both.get), max(rest, key=rest.get)
    ratio = both[one] / rest[other]
    return f"prefix-homogeneous and shared-prefix attention together best of all: {one} / {other}: {ratio:.2f}: {verdict(ratio > 1)}{', within noise' if abs(1 - ratio) < noise else ''}.  "


def five_lines(runs):
    """The two targets on the default load, by throughput and by the steps without prefill."""
    lines = []
    for other, target in (("fill, plain", 5), ("fill, shared", 1.4)):
        ratio = runs["prefix-homogeneous never, shared"]["tokens_per_s"] / runs[other]["tokens_per_s"]
        steps = runs[other]["step_ms"] / runs["prefix-homogeneous never, shared"]["step_ms"]
        lines.append(f"prefix-homogeneous never, shared / {other}: {ratio:.2f} (target {target}): {verdict(ratio >= target)}; by the steps without prefill alone: {steps:.2f}.  ")
    return lines


def turn_words(in_turn):
    return "; ".join(", ".join(name.replace(", ", " ") for name in names) for names in in_turn)


def default_here_lines(found, default, noise):
    load, runs = default["load"], default["runs"]
    scaled = "" if found["scale"] == 1 else f" Lengths are 1/{found['scale']} of the default load's; targets are for the full ones."
    share = max(run["scheduler_share"] for name, run in runs.items() if name.startswith("prefix-homogeneous"))
    group = load["requests"] / load["groups"]
    return [f"{load['requests']} requests in {load['groups']} groups of {load['shared']:,} shared tokens, {load['own']} of their own, {load['output']} out, all at once; {load['slots']} in the batch;",
            f"the prefixes are in the cache before.{scaled} The default load's 200 outputs are scaled to {load['output']}, as a",
            f"plain step takes {runs['fill, plain']['step_ms'] / 1e3:.1f} s here and all systems have several passes. So the requests' own prefills and the filling of the batch weigh more than",
            "with 200, and the ratio of tokens/s lies nearer to 1 than that of the steps. Several passes on one server give the median and the range",
            f"around it. The systems take turns, their servers side by side, so that other load on the machine affects them alike: {turn_words(default['in_turn'])}.",
            "`lpm` is not among them: it orders by cached prefixes, which all have the same length here. It is simulated below.", "",
            *here_table(runs), *five_lines(runs),
            *(f"{text}: {ratio:.2f} (target 0.98): {verdict_beside_fill(ratio, noise)}.  " for text, ratio in (
                ("prefix-homogeneous never, plain / fill, plain", runs["prefix-homogeneous never, plain"]["tokens_per_s"] / runs["fill, plain"]["tokens_per_s"]),
                ("prefix-homogeneous bandit, shared / fill, shared", runs["prefix-homogeneous bandit, shared"]["tokens_per_s"] / runs["fill, shared"]["tokens_per_s"]))),
            best_line(runs, noise),
            f"The second target needs a batch of fewer groups than fill's: fill has all {load['groups']}, prefix-homogeneous the first {min(load['groups'], math.ceil(load['slots'] / group))}"
            f" ({load['slots']} rows of groups of about {group:.0f}), then the rest.  ",
            f"scheduling, prefix-homogeneous by hashes: {100 * share:.3f} % of the steps' time (target 0.5 %): {verdict(share <= 0.005)}.", "",
            *why_missed_lines(runs)]


def why_missed_lines(runs):
    if runs["prefix-homogeneous never, shared"]["tokens_per_s"] >= 5 * runs["fill, plain"]["tokens_per_s"]:
        return []
    return [f"Why the first target is missed: the steps alone take {runs['fill, plain']['step_ms']:,.0f} ms with fill and plain attention and {runs['prefix-homogeneous never, shared']['step_ms']:,.0f} ms with prefix-homogeneous and shared-prefix attention,",
            "and a request prefills the same tokens with both. A shared step no longer waits for memory alone. It reads keys and values once for",
            "a tile and then computes on them for all of its queries. On this machine reading and computing hardly overlap, so the",
            "time of attention falls far less than the bytes do. Prefetching into a nearer cache did not change that beyond noise (tried apart from",
            "this page's command, and not kept).", ""]


def of_vectors(made):
    """A note on the columns for a machine without AMX."""
    words = "Without AMX shared-prefix attention reads a common block once for 16 queries at a time (8 requests), and the next 16 of a tile follow at once."
    return [words, ""] if "without AMX" in made.get("machine", "") else []


def elsewhere(part, name):
    """How a section of the servers was made, where that is not how the part was."""
    made = part["found"].get("made", {}).get(name)
    if not made or (made["machine"], made["command"]) == (part["machine"], part["command"]):
        return []
    return [*made_by(made), *of_vectors(made)]


def here_section(part):
    found = part["found"]
    lines = ["## Decoding on this processor", "", *made_by(part), *of_vectors(part)]
    sections = found.get("sections", {})
    if "unshared" not in sections:
        return [*lines, "The data are of an earlier form of `scripts/exp_feather --real`: run it again.", ""]
    if found["missing"]:
        lines += [f"The run ended before all was measured; missing: {', '.join(found['missing'])}.", ""]
    control, noise = control_of(sections["unshared"]["runs"])
    lines += ["Qwen3-0.6B's shape, random weights, bf16. Bytes: keys and values that the rows of the mean decode step",
              "attend to, row by row, and the different ones among them, from the scheduler's record. Plain attention reads all",
              "of the former. Shared-prefix attention reads a common block once for up to 64 queries of a KV head (32 requests here), beyond",
              "6,144 keys for 32 queries. The next tile of queries finds it in the cache if it is still there. No rule has learned before.",
              "Step: the median of steps without prefill. The ratio fill, shared / fill, plain without shared prefixes, which is the same work:",
              f"{control:.2f}. Ratios nearer to 1 than that are within noise.", ""]
    if "default" in sections:
        lines += ["### The default workload", "", *elsewhere(part, "default"), *default_here_lines(found, sections["default"], noise)]
    if "long" in sections:
        load, runs = sections["long"]["load"], sections["long"]["runs"]
        lines += [f"### The same with {load['output']} outputs", "", *elsewhere(part, "long"), "One pass each, one after the other. Decode steps weigh more here.", "",
                  *here_table(runs), *five_lines(runs), best_line(runs, noise), ""]
    load, runs = sections["unshared"]["load"], sections["unshared"]["runs"]
    lines += ["### Nothing shared", "", *elsewhere(part, "unshared"), f"{load['requests']} requests of {load['own']} tokens of their own, {load['output']} out, all at once; {load['slots']} in the batch. In turn: {turn_words(sections['unshared']['in_turn'])}.", "",
              *here_table(runs),
              *(f"prefix-homogeneous {rule}, {attention} / fill, {attention}: {ratio:.2f} (target 0.98): {verdict_beside_fill(ratio, noise)}.  " for rule, attention in (("never", "plain"), ("never", "shared"), ("bandit", "shared"))
                for ratio in [runs[f"prefix-homogeneous {rule}, {attention}"]["tokens_per_s"] / runs[f"fill, {attention}"]["tokens_per_s"]]),
              best_line(runs, noise), ""]
    if "batches" in sections:
        lines += batches_here_lines(part)
    return lines + foreign_and_fraction_lines(part)


def figures_of(run):
    """Cells of a small table: tok/s, step, TPOT, batch, bytes."""
    return [f"{run['tokens_per_s']:.1f}", f"{run['step_ms']:.1f}", f"{run['tpot_ms']:.0f}", f"{run['batch']:.1f}",
            *(f"{run[key] * KV_BYTES / 1e9:.2f}" for key in ("kv_tokens_asked", "kv_tokens_unique"))]


FIGURES = ["tok/s", "step ms", "TPOT p50 ms", "mean batch", "GB asked", "GB unique"]


def batches_here_lines(part):
    section = part["found"]["sections"]["batches"]
    load, cells = section["load"], section["cells"]
    one = next(iter(cells))
    kept = [i for i, name in enumerate(FIGURES) if not name.startswith("TPOT")]  # all tokens come when the batch ends
    rows = [[batches, output, f"{run['tokens_per_s'] / cells[one][output]['tokens_per_s']:.2f}", *(figures_of(run)[i] for i in kept)]
            for batches, runs in cells.items() for output, run in runs.items()]
    return ["### Batch size against purity", "", *elsewhere(part, "batches"), f"{load['requests']} requests in 8 groups of {load['shared']:,} shared tokens, {load['own']} of their own, one group after the other, in static batches (`request-level`:",
            "a batch ends with its last request), shared-prefix attention, one pass each. The smallest batches have one group each; published, for 800 requests: ahead from about 20 outputs on.",
            "Answers are delivered when their batch ends, so clients see no time between tokens; the table has the step's time.", "",
            *table(["batches x size", "outputs", f"to {one}", *(FIGURES[i] for i in kept)], rows)]


def foreign_and_fraction_lines(part):
    found = part["found"]
    half, few, kilos = found["slots"] // 2, found["slots"] // 8, 2048 // found["scale"]
    lines = []
    for title, key, about in (
            ("One foreign request in a batch of one group", "foreign",
             f"{half} requests at once, as many slots, {kilos:,} shared tokens, 20 of their own, {found['output']} out; `fill`, one pass. 1: one of them, in the middle, is of another group."),
            ("Shared fraction of a prompt", "fraction",
             f"{few} requests at once, as many slots (the first end before the last prompts are computed), prompts of {kilos:,} tokens (at least 32 of them shared and 32 not), {found['output']} out; `fill`, one pass. tok/s counts their prefills.")):
        if key in found["sections"]:
            lines += [f"### {title}", "", *elsewhere(part, key), about, "",
                      *table([key, "attention", *FIGURES], [[value, name.split(", ")[1], *figures_of(run)] for value, runs in found["sections"][key].items() for name, run in runs.items()])]
    return lines


ASSUMES = """The simulation uses the real scheduler, prefix cache and memory. The time of a step follows from the device's data sheet and from
published efficiencies (devices/README.md); no simulated run has been compared with a GPU's. Decode rows read keys and values in one of three ways:

- **each**: every row reads all of its own from memory.
- **cached**: the same, but bytes that another row of the step has read in the same layer come at no cost from the device's last-level
  cache, in the proportion to which the different bytes of a layer fit it. That is an upper bound on a cache's gain for a plain kernel
  with the arithmetic assumed here, since real caches also hold other data and evict in the wrong order.
- **once**: a kernel reads shared bytes once, at every depth, and multiplies the query heads of all rows that share them together.

With `each` and `cached` only the query heads that share a KV head (4 with Llama-3.1-8B) are multiplied together, at the efficiency
assumed for a product of so many rows. No step is faster than that. Without shared prefixes all three take the same time. So `each`
shows no gain from grouping but by the prefix cache, and `cached` at most a cache's gain. Under `once` orders differ by unique bytes
and by avoided prefills. Nothing here says how fast a GPU is.

Each step begins with a scheduling round of the time that `skein bench sched` measured for the rule (5,000 tokens of prefix, 500
waiting; `lpm` and `dfs-weight` over a radix tree, as published). `feather` is the preset as shipped, from an empty table: stop rule
`model`, a bound on waiting of 10 s and a stretch of 3. `prefix-homogeneous RULE` is an ablation: that stop rule, without a bound on
waiting. `skein sim` profiles the device as a server does at its start; the profile's time is not counted."""


def main_line(run, base):
    return [f"{run['tokens_per_s']:.0f}", f"{run['tokens_per_s'] / base:.2f}", f"{run['median_tpot_ms']:.1f}", f"{run['p95_ttft_ms'] / 1e3:.1f}", f"{run['mean_decode_batch']:.0f}",
            f"{run['kv_bytes_asked_per_step'] / 1e9:.1f}", f"{run['kv_bytes_unique_per_step'] / 1e9:.2f}", f"{100 * run['hits']:.0f}", run["num_preemptions"]]


COLUMNS = ["tok/s", "to FCFS, each", "TPOT p50 ms", "TTFT p95 s", "mean batch", "GB asked", "GB unique", "hits %", "preempted"]


def grouped(runs, depth):
    """{prefix: {rest: runs}} of names cut behind `depth` parts."""
    found = collections.defaultdict(dict)
    for name, reports in runs.items():
        parts = name.split("/")
        found["/".join(parts[:depth])]["/".join(parts[depth:])] = reports
    return found


def default_lines(runs):
    lines = ["### Default workload", "", "1,200 requests (600 with --quick), 5 groups of 5,120 shared tokens, 20 of their own, 200 out, Poisson arrivals at 100 a second, at most",
             "500 in the batch, Llama-3.1-8B's shape. The token budget, 32K without shared tokens, was read as `--max-num-batched-tokens 32768`: it counts the tokens that a",
             "step computes, and none that come from the cache or from another row of the step. `lpm` and `dfs-weight` are SGLang's orders, `dynamic` aims at steps of 100 ms, `oracle` is told",
             "the groups and never mixes them. Ablations that learn from a table are shown in a second run, which begins with the table of the first (cold: the first itself).", ""]
    for device, found in grouped(runs, 1).items():
        base = found["fill (FCFS)/each"][0]["tokens_per_s"]
        rows = []
        for name, reports in found.items():
            if len(reports) > 1:
                rows.append([name.replace("/", ", ") + ", cold", *main_line(reports[0], base)])
            rows.append([name.replace("/", ", "), *main_line(reports[-1], base)])
        speed = {name: reports[-1]["tokens_per_s"] for name, reports in found.items()}
        lines += [f"{DEVICES[device]}:", "", *table(["system, reads", *COLUMNS], rows),
                  *(f"{text}: {ratio:.2f} (target {target}): {verdict(ratio >= target)}.  " for text, ratio, target in (
                      ("feather, once / FCFS, each", speed["feather/once"] / speed["fill (FCFS)/each"], 5),
                      ("feather, once / FCFS, once", speed["feather/once"] / speed["fill (FCFS)/once"], 1.4),
                      ("feather, cached / FCFS, cached", speed["feather/cached"] / speed["fill (FCFS)/cached"], 1.4))),
                  *(f"feather, {reads} / the best fixed rule (never, heuristic), {reads}: {ratio:.2f} (target 0.95): {verdict(ratio >= 0.95)}.  "
                    for reads in ("each", "cached", "once")
                    for ratio in [speed[f"feather/{reads}"] / max(speed[f"prefix-homogeneous {rule}/{reads}"] for rule in ("never", "heuristic"))]), ""]
    return lines


SERIES = {"groups": "Groups", "output": "Output tokens (20 groups)", "shared": "Shared tokens (0: prompts of 1,024, nothing shared)", "cold": "Groups, prefixes not in the cache before", "rate": "Arrivals a second",
          "levels": "Levels of a sharing tree of 16 leaves", "model": "Models (A100 80 GB)", "model100": "Models, 100 groups (A100 80 GB)", "slots": "Groups, 64 in the batch", "bounded": "Groups, 64 in the batch, 8 GiB of keys and values",
          "burst": "Groups, all requests at once, 2,048 shared tokens, 100 out"}
WHERE = """These tables show the cases in which `prefix-homogeneous` can gain. With reads **cached** batches of few groups gain, since
their prefixes fit the device's cache. With reads **once** the number of different prefixes in the batch decides. With 500 in the batch and
5 groups every full batch has all of them, so the target of 1.4 over `fill` with the same attention is out of reach by arithmetic. Fewer
slots than waiting requests, or many groups, leave a choice. Prefixes that do not all fit the prefix cache leave more, since requests of
the batch's prefix also find it there. The weights and each row's own tokens, which every step reads, bound the rest. With reads **each**
only the prefix cache brings a gain. At low rates no request waits, so there is nothing to choose."""


def speed_of(runs, name):
    return runs[name][-1]["tokens_per_s"]


OTHERS = ("fill", "lpm", "dfs-weight")
MOST_SLOWER, MOST_TTFT = 0.98, 1.2


def series_lines(found):
    lines = ["### Varied", "", *WHERE.splitlines(), "",
             "800 requests (400 with --quick). Output tokens/s and, behind it, TTFT p95 in seconds. `of the best`: tokens/s over the most of `fill`, `lpm` and `dfs-weight`; TTFT over their least. The",
             "ablations are under \"Never worse than the best other?\". All else is as in the default workload, on an RTX 6000 Ada unless a title names another device.", ""]
    for key, title in SERIES.items():
        if key not in found:
            continue
        values = grouped(found[key], 1)
        rows = []
        for value, runs in values.items():
            for reads in ("each", "cached", "once"):
                cells = [runs[f"{name}, {reads}"][-1] for name in (*OTHERS, "feather")]
                speed, wait = beside_best(runs, reads, "feather")
                rows.append([value, reads, *(f"{run['tokens_per_s']:.0f}, {run['p95_ttft_ms'] / 1e3:.1f}" for run in cells), f"{speed:.2f}, {wait:.2f}"])
        lines += [f"#### {title}", "", *table([key, "reads", *OTHERS, "feather", "of the best"], rows)]
    return lines


def beside_best(runs, reads, name):
    """(tokens/s over the most of the other policies, TTFT p95 over their least)"""
    own, others = runs[f"{name}, {reads}"][-1], [runs[f"{other}, {reads}"][-1] for other in OTHERS]
    return own["tokens_per_s"] / max(run["tokens_per_s"] for run in others), own["p95_ttft_ms"] / min(run["p95_ttft_ms"] for run in others)


def published_lines(found):
    """The text's figures of whole systems, on GPUs, beside the nearest simulated here."""
    rows = []

    def row(what, least, whose, runs, own, other, between):
        if not runs:
            return
        ratios = [speed_of(runs, f"{own}{between}{reads}") / speed_of(runs, f"{other}{between}{base}")
                  for reads, base in (("each", "each"), ("cached", "cached"), ("once", "once"), ("once", "each"))]
        rows.append([what, f"{least} ({whose})", *(f"{ratio:.2f}" for ratio in ratios), verdict(max(ratios[:3]) >= least)])

    for device, runs in grouped(found["default"], 1).items():
        row(f"default, {DEVICES[device]}, feather / fill", 4, "vLLM-FCFS", runs, "feather", "fill (FCFS)", "/")
    groups, outputs = grouped(found["groups"], 1), grouped(found["output"], 1)
    row("100 groups, 8B, RTX 6000 Ada, feather / fill", 10, "vLLM-FCFS", groups.get("100"), "feather", "fill", ", ")
    for model, runs in grouped(found.get("model100", {}), 1).items():
        published = (22, "a 13B model") if "14b" in model else (10, "vLLM-FCFS")
        row(f"100 groups, {model}, A100 80 GB, feather / fill", *published, runs, "feather", "fill", ", ")
    for device, runs in grouped(found["default"], 1).items():
        row(f"200 outputs, {DEVICES[device]}, 5 groups, feather / lpm", 3, "SGLang's policies", runs, "feather", "lpm", "/")
    row("200 outputs, RTX 6000 Ada, 20 groups, feather / lpm", 3, "SGLang's policies", outputs.get("200"), "feather", "lpm", ", ")
    return ["### Beside the published figures", "", "Throughput of `feather` over the other's, simulated, beside FEATHER's (Fig. 5.16, Table 3.1). The text measured whole systems on GPUs with plain kernels. Only `cached` bounds the",
            "effect of their caches from above. The column `once / each` also has a kernel that reads shared prefixes once, which no order brings about. Reached: by the same kernel for both.", "",
            *table(["", "published", "each", "cached", "once", "once / each", ""], rows)]


CURVE_STEPS, FIRST_BATCHES = 50, 200  # batches of a point of the learning curve; and what a rule has to learn in
FIXED = ("fill (FCFS)", "prefix-homogeneous never", "prefix-homogeneous heuristic")
RULES = ("feather", "never", "heuristic", "bandit", "q-learning")


def never_worse_lines(found):
    lines = ["### Never worse than the best other?", "", "All experiments of \"Varied\": tokens/s over the most of `fill`, `lpm` and `dfs-weight` with the same reads, and TTFT p95 over their least. `feather` as shipped must",
             f"not be below {MOST_SLOWER} or above {MOST_TTFT} anywhere; the others are ablations, without a bound on waiting. All count from the first request on: nothing was learned before, no warm-up is left out.", ""]
    rows, missed = [], []
    for rule in RULES:
        ratios = [(*beside_best(runs, reads, rule), f"{key} {value}, {reads}") for key in SERIES for value, runs in grouped(found.get(key, {}), 1).items()
                  for reads in ("each", "cached", "once") if f"{rule}, {reads}" in runs]
        slow, late = min(ratios), max(ratios, key=lambda one: one[1])
        most = max(ratios)
        bad = [one for one in ratios if one[0] < MOST_SLOWER or one[1] > MOST_TTFT]
        rows.append([rule, len(ratios), f"{slow[0]:.2f}", slow[2], f"{most[0]:.2f}", most[2], f"{late[1]:.2f}", late[2], len(bad), verdict(not bad)])
        if rule == "feather":
            missed = [f"{where} ({speed:.2f}, {wait:.2f})" for speed, wait, where in bad]
    lines += table(["rule", "experiments", "least tok/s", "where", "most", "where", "TTFT most", "where", "missed in", ""], rows)
    return lines + ([f"`feather` misses at: {'; '.join(missed)} (tokens/s, TTFT).", ""] if missed else []) + CAUSES.splitlines() + [""]


CAUSES = """The miss at 100 groups on qwen2.5-14b with reads `each` has this cause. The load begins while about 40 of the 100 requests that fill the
cache still wait, since the device takes 0.65 s for each and they come every 0.4 s. `feather` computes them first, as first come, first
served. They evict other prefixes, since the memory holds about 40. `lpm` serves requests with cached prefixes before them, and a prefix that
it computes for one of them serves its group at once. With 0.8 s between these requests and all else equal, `feather` has 1.14 times the tokens/s of
the best other and 0.86 times its TTFT p95. Reads `each` leave no other gain than the prefix cache.

Turns that end early cost throughput where waits are near the bound. With reads `cached`, 50 output tokens and 20 groups give 1.24 times the
best other's tokens/s (1.63 when turns went on), at 0.81 times its TTFT p95 (0.96). 1,024 shared tokens give 1.10 (1.21) at 0.83 (1.26).

### Devices unlike their profile

The rule `model` predicts from a profile. `TurnsLoss` (`src/sched/decode_set/turns_loss_test.cc`) serves bursts of 1,500 requests of
eight groups on devices whose steps take other times than the profile says, 25 times as much or as little. Speed over first come, first served, the least of
two bursts, each of about 1,000 batches:

| device | before the account | with it |
|---|---:|---:|
| as profiled, within a tenth | 2.09 | at least 2.00 |
| batches of few groups 25 times as slow | 0.07 | at least 0.98 |
| the same, in every other 50 batches | 0.11 | at least 0.98 |
| batches of few groups 5 times as slow | 0.40 | at least 0.98 |
| all steps 25 times as slow, shared tokens read once | 0.40 | at least 0.98 |
| constant part of a step 25 times as long | 0.45 | at least 0.98 |
| cache 25 times as small | 0.94 | at least 0.98 |
| all steps 25 times as slow | 1.10 | at least 0.98 |

The account costs the last device its gain: no turns begin on a device that differs from its profile by more than they promise. Measured
in batches of that device, one step of a turn is the least that has to be seen before turns can end. So the bound of 2 % of 1,000
batches holds while such a step takes up to eleven times as long as one with all, and 3.4 % at 25 times.

Devices whose batches of all groups are faster than the profile says, while their turns are as fast as profiled:

| device | account alone | with the measured cache |
|---|---:|---:|
| shared tokens read once | 0.50 | at least 0.98 |
| tokens 25 times as cheap | 0.36 | at least 0.98 |
| cache 25 times as large | 0.50 | at least 0.98 |
| shared tokens read once, all requests at once | 0.50 | 0.96 |
| tokens 25 times as cheap, all requests at once | 0.42 | 0.94 |
| cache twice as large | 1.34 | 1.44 |
| cache four times as large | 0.85 | 0.99 |

Steps whose tokens exceed the cache by the fit show such a device, and measured steps enlarge the cache of the fit
(`sched/decode_set/measured_cost.h`). Nothing is tried for that, since these steps come anyway: a load begins with few requests of many
groups, requests of two turns overlap, and answers grow. If all requests come at once, none of them comes during most of the first turn. That turn is
the loss: the second burst loses nothing. With 30 output tokens instead of 200 a burst is only about 90 batches long, and the first burst gives 0.92
on the device that reads shared tokens once, 0.90 if all requests come at once.

A trial was measured and left out: one request of a further group in a turn's batch. It stays for all of its steps, and by the fit it
can double the time of a turn's steps. It cost 4 % of the tokens/s with 100 groups and reads `cached`, and changed the
table above by less than 0.01.
"""


def rate_of_first(curve):
    """Tokens/s of the first FIRST_BATCHES batches that decode."""
    points = curve[:FIRST_BATCHES // CURVE_STEPS]
    return sum(rows for _, rows, _ in points) / sum(rows / rate for _, rows, rate in points)


def curve_lines(curves):
    """Tokens per second over batches, from an empty table."""
    length = min(12, *(len(reports[0]["curve"]) for reports in curves.values()))
    cumulative = {name: [CURVE_STEPS * (i + 1) for i in range(length)] for name in curves}
    rows = []
    for name, reports in curves.items():
        points = reports[0]["curve"][:length]
        rows.append([name, *(f"{rate:.0f}" for _, _, rate in points), f"{reports[0]['tokens_per_s']:.0f}"])
    own, best = curves["feather"][0], max((reports[0] for name, reports in curves.items() if name != "feather"), key=lambda run: run["tokens_per_s"])
    steps = cumulative["feather"]
    ratio = own["tokens_per_s"] / best["tokens_per_s"]
    early = {name: rate_of_first(reports[0]["curve"]) for name, reports in curves.items() if name in FIXED or name == "feather"}
    fixed = max((name for name in early if name in FIXED), key=early.get)
    early_ratio = early["feather"] / early[fixed]
    return ["### The learning curve", "", "The default load, reads cached, one run from an empty table: tokens/s of each 50 batches that decode, up to the batch in the heading, prefills included; then of the whole run.", "",
            *table(["", *map(str, steps), "all"], rows), f"feather / the best other rule, whole run: {ratio:.2f} (target 0.95): {verdict(ratio >= 0.95)}.  ",
            f"Over the first {FIRST_BATCHES} batches, feather {early['feather']:.0f} tokens/s / the best fixed rule ({fixed}) {early[fixed]:.0f}: {early_ratio:.2f} (target 0.95): {verdict(early_ratio >= 0.95)}.", ""]


def batches_lines(found):
    """Static batches of 800 requests: when pure ones pay for being small."""
    by_reads = collections.defaultdict(lambda: collections.defaultdict(dict))
    for name, reports in found.items():
        batches, output, reads = name.split("/")
        by_reads[reads][int(batches)][int(output)] = reports[-1]
    lines = ["### Batch size against purity", "", "800 requests in 8 groups of 100, 2,048 shared tokens, 20 of their own, all at once, one group after the other, in static batches (`request-level`: a batch",
             "ends with its last request): 1 x 800 has all groups in one batch, from 8 x 100 on batches are pure. Tokens/s by output tokens; the other columns with the most of them.",
             "Answers are delivered when their batch ends, so clients see no time between tokens. Ms a token: a batch's time, its prefills included, over its outputs.", ""]
    firsts = []
    for reads, batches in by_reads.items():
        outputs = sorted(next(iter(batches.values())))
        rows = []
        for count, runs in sorted(batches.items()):
            last = runs[outputs[-1]]
            rows.append([f"{count} x {800 // count}", *(f"{runs[output]['tokens_per_s']:.0f}" for output in outputs), f"{8e5 / count / last['tokens_per_s']:.1f}", f"{last['mean_decode_batch']:.0f}",
                         *(f"{last[key] / 1e9:.2f}" for key in ("kv_bytes_asked_per_step", "kv_bytes_unique_per_step"))])
        lines += [f"Reads {reads}:", "", *table(["batches x size", *map(str, outputs), "ms a token", "mean batch", "GB asked", "GB unique"], rows)]
        ratios = {output: batches[8][output]["tokens_per_s"] / batches[1][output]["tokens_per_s"] for output in outputs}
        firsts.append([reads, next((str(output) for output, ratio in ratios.items() if ratio > 1), "none"), "about 20", *(f"{ratio:.2f}" for ratio in ratios.values())])
    return [*lines, "The least number of outputs at which 8 x 100 is ahead of 1 x 800, beside the published crossover, and 8 x 100 over 1 x 800 by outputs:", "",
            *table(["reads", "first ahead at", "published", *map(str, outputs)], firsts)]


def tradeoff_lines(found):
    lines = batches_lines(found["batches"])
    runs = grouped(found["foreign"], 1)
    systems = list(next(iter(runs.values())))
    lines += ["### One foreign request beside 63 of one group", "", "64 requests at once, all in one batch, 2,048 shared tokens, 20 of their own, 100 out; tokens/s, and GB asked and unique in the mean step of `fill`.", "",
              *table(["foreign", *(name.replace("/", ", ") for name in systems), "GB asked", "GB unique"],
                     [[foreign, *(f"{speed_of(one, name):.0f}" for name in systems), *(f"{one['fill (FCFS)/each'][-1][key] / 1e9:.2f}" for key in ("kv_bytes_asked_per_step", "kv_bytes_unique_per_step"))]
                      for foreign, one in runs.items()])]
    runs = grouped(found["fraction"], 1)
    return lines + ["### Shared fraction of 2,048 tokens", "", "64 requests at once, all in one batch, 100 out, `fill`; tokens/s. Each has at least 20 tokens of its own.", "",
                    *table(["fraction", "each", "cached", "once", "GB asked", "GB unique"],
                           [[fraction, *(f"{speed_of(one, reads):.0f}" for reads in ("each", "cached", "once")), *(f"{one['each'][-1][key] / 1e9:.2f}" for key in ("kv_bytes_asked_per_step", "kv_bytes_unique_per_step"))]
                            for fraction, one in runs.items()])]


def account_lines(found):
    """A learned rule's gain or loss without its account: where prefixes outnumber the cache, and on the default load."""
    gains = [reports[-1]["tokens_per_s"] for name, reports in found["constants"].items() if name.endswith("/max-loss/1")]
    fill = {reads: speed_of(found["loss"], f"fill (FCFS)/None/{reads}") for reads in ("cached", "once")}
    default = [report["tokens_per_s"] / fill[name.split("/")[2]] for name, reports in found["loss"].items() if name.split("/")[1] == "1" for report in reports]
    if not gains or not default:
        return []
    never = speed_of(found["learning"], "prefix-homogeneous never")
    return [f"By its account (`max-loss` 0.01) a learned rule hardly acts. If prefixes outnumber the cache, as here, `--stop-constants max-loss=1` may gain: {min(gains) / never:.2f} to",
            f"{max(gains) / never:.2f} of `prefix-homogeneous never`. On the default load it ranged from {min(default):.3f} to {max(default):.3f} of `fill`. Other constants of these rules show only without",
            "the account: rows with `max-loss=1` beside the constant have none.", ""]


def threshold_lines(runs):
    if not runs:
        return []
    rows = collections.defaultdict(dict)
    for name, reports in runs.items():
        rule, constant, value, reads = name.split("/")
        rows[rule, constant, value][reads] = reports[-1]["tokens_per_s"]
    return ["Constants of `heuristic` where it acts: 800 requests (400 with --quick) at once in 16 groups of 2,048 shared tokens, 20 of their own, 100 out:", "",
            *table(["rule", "constant", "value", "cached", "once"], [[*key, *(f"{speed[reads]:.0f}" for reads in ("cached", "once"))] for key, speed in rows.items()])]


def loss_lines(runs):
    """The learned rules' largest losses, on the default load."""
    fill = {reads: runs[f"fill (FCFS)/None/{reads}"][-1]["tokens_per_s"] for reads in ("cached", "once")}
    rows = []
    for name, reports in runs.items():
        rule, value, reads = name.split("/")
        if value != "None":
            rows.append([rule, value, reads, *(f"{report['tokens_per_s'] / fill[reads]:.3f}" for report in reports), f"{reports[-1]['median_tpot_ms']:.0f}", f"{reports[-1]['mean_decode_batch']:.0f}"])
    return ["The cost of stopping under the rule's own account (`max-loss`; 1: no account), default load; throughput over `fill`'s:", "",
            *table(["rule", "max-loss", "reads", "first run", "second run", "TPOT p50 ms", "mean batch"], rows)]


def wait_lines(runs):
    """The cost of the bound on waiting."""
    rows = []
    for load, its_runs in grouped(runs, 1).items():
        for reads, systems in grouped(its_runs, 1).items():
            best = max(speed_of(systems, f"{other}/") for other in ("fill (FCFS)", "lpm"))
            for system, reports in systems.items():
                first, rest = system.split("/")
                run = reports[-1]
                shown = [first, "", ""] if not rest else ["feather", f"{int(first) / 1e3:.0f}", rest]
                rows.append([load, reads, *shown, f"{run['tokens_per_s']:.0f}", f"{run['tokens_per_s'] / best:.2f}", run["prefix_groups_overdue"],
                             f"{run['p95_ttft_ms'] / 1e3:.1f}", f"{run['mean_decode_batch']:.0f}", f"{run['kv_bytes_unique_per_step'] / 1e9:.2f}"])
    return ["### The bound on waiting", "", "A request is overdue if it has waited for `--stop-max-wait-ms` and if `--stop-max-wait-stretch` times as many requests have joined since it came as waited before it (0: the time alone",
            "counts). The preset has 10 s and 3; all other rows of `feather` are ablations. The default load; `bounded`: 40 groups, 64 in the batch, 8 GiB of keys and values; `cold 100`: 100 groups whose prefixes",
            "are not in the cache before. Overdue: requests that joined so.", "",
            *table(["load", "reads", "rule", "bound s", "stretch", "tok/s", "to the best other", "overdue", "TTFT p95 s", "mean batch", "GB unique"], rows)]


def learning_lines(found):
    base = found["learning"]["prefix-homogeneous never"][-1]["tokens_per_s"]
    lines = ["### Learning from a table (ablations)", "", "800 requests (400 with --quick), 100 a second, of 50 groups of 5,120 shared tokens, more than the cache holds; 20 of their own, 100 out; read once.",
             "Tokens/s.", "",
             *table(["", "tok/s", "to prefix-homogeneous never"], [[name, f"{reports[-1]['tokens_per_s']:.0f}", f"{reports[-1]['tokens_per_s'] / base:.2f}"] for name, reports in (
                 *found["learning"].items(), *found["frozen"].items())]),
             "Convergence, by run of the same load; each run begins with the table of the one before:", "",
             *table(["rule", *(str(i + 1) for i in range(len(next(iter(found["convergence"].values())))))],
                    [[name, *(f"{report['tokens_per_s']:.0f}" for report in reports)] for name, reports in found["convergence"].items()]),
             "Constants, each moved alone (learned rules: the second run). The bins of the state (b, delta, w) are fixed and were not varied.", "",
             *table(["rule", "constant", "value", "tok/s"], [[*name.split("/"), f"{reports[-1]['tokens_per_s']:.0f}"] for name, reports in found["constants"].items()]),
             *account_lines(found),
             *loss_lines(found["loss"]),
             *threshold_lines(found.get("thresholds", {}))]
    phases = sorted(next(iter(found["shifting"].values()))[0]["classes"], key=lambda name: int(name.split()[0]))
    return [*lines, "Shifting load, 10 groups of 5,120 shared tokens, 20 of their own, 200 out, each rate for 30 s (10 with --quick); TPOT p50 and TTFT p95, ms, by phase (learned rules: the second run):", "",
            *table(["rule", *phases], [[name, *(f"{reports[-1]['classes'][phase]['median_tpot_ms']:.1f}, {reports[-1]['classes'][phase]['p95_ttft_ms']:.0f}" for phase in phases)]
                                       for name, reports in found["shifting"].items()])]


def plot_series(pyplot, found, out):
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    for axis, key in zip(axes, ("groups", "output")):
        values = grouped(found[key], 1)
        for name in ("fill, cached", "lpm, cached", "feather, cached", "fill, once", "feather, once"):
            axis.plot([int(value) for value in values], [runs[name][-1]["tokens_per_s"] for runs in values.values()], marker="o", label=name)
        axis.set_xlabel(SERIES[key])
        axis.set_xscale("log")
        axis.set_ylabel("output tokens/s, simulated")
    axes[0].legend()
    return save(figure, out / "feather-simulated.svg")


def plot_curve(pyplot, curves, out):
    """Batch size over time, and tokens/s over batches."""
    figure, (sizes, rates) = pyplot.subplots(1, 2, figsize=(10, 4))
    for name, reports in curves.items():
        points = reports[0]["curve"]
        sizes.plot([end for end, _, _ in points], [size for _, size, _ in points], label=name)
        rates.plot([50 * (i + 1) for i in range(len(points))], [rate for _, _, rate in points], label=name)
    sizes.set_xlabel("seconds, simulated")
    sizes.set_ylabel("decodes in a batch")
    rates.set_xlabel("batches")
    rates.set_ylabel("output tokens/s, simulated")
    rates.legend()
    return save(figure, out / "feather-curve.svg")


SIMULATED = {"default", "groups", "output", "batches", "burst", "foreign", "fraction", "learning", "convergence", "frozen", "constants", "loss", "wait", "shifting", "curve"}


def write_page(out=OUT):
    data = json.loads((out / "data/feather.json").read_text())
    lines = ["# FEATHER's experiments", "", "The choice of requests that decode together, the rule that ends a batch's growth, and attention that reads a shared prefix once.", ""]
    if "sched" in data:
        lines += sched_section(data["sched"])
    if "here" in data:
        lines += here_section(data["here"])
    if "simulated" in data and not SIMULATED <= data["simulated"]["found"].keys():
        lines += ["## Full size, simulated", "", "The data are of an earlier form of `scripts/exp_feather --simulated`: run it again.", ""]
    elif "simulated" in data:
        found = data["simulated"]["found"]
        lines += ["## Full size, simulated", "", *made_by(data["simulated"]), *ASSUMES.splitlines(), ""]
        if pyplot := load_pyplot():
            lines += [f"![Throughput by groups and by output tokens]({plot_series(pyplot, found, out)})", "",
                      f"![Batch size over time, and the learning curve]({plot_curve(pyplot, found['curve'], out)})", ""]
        lines += default_lines(found["default"]) + published_lines(found) + never_worse_lines(found) + curve_lines(found["curve"]) + series_lines(found) + tradeoff_lines(found) + learning_lines(found) + wait_lines(found["wait"])
    pages.write(out / "feather.md", "\n".join(lines).rstrip("\n") + "\n")


if __name__ == "__main__":
    write_page()
