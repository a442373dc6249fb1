#!/usr/bin/env python3
"""Turns the measurements of scripts/exp_prefill_only_load into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_prefill_only_load.py

Reads docs/results/data/prefill-only-load.json; writes docs/results/prefill-only-load.md and prefill-only-load-*.svg. Nothing
is measured here. The data: by part (`real`, `simulated`) and load the figures of each system by rate, in shares of x; figures
are requests a second, hits as a share, latencies in seconds, or `error`.
"""
import json
import math
import pathlib

import pages
from charts import load_pyplot, save, table

OUT = pathlib.Path(__file__).resolve().parent.parent / "docs/results"
DATA = OUT / "data/prefill-only-load.json"
LATENCIES = ("mean", "median", "p90", "p95", "p99")
TARGET = 1.4  # times the rate at equal mean and p99 latency
# The baselines of the targets, as far as they have room.
FEASIBLE = ("paged fcfs", "chunked fcfs", "chunked fcfs, tp 2", "chunked fcfs, pp 2")
SUMMARY_RATES = (0.25, 0.5, 1, 2)
FIGURES = ("req/s", "mean s", "p99 s", "hits")
PLOTTED = {"requests_per_s": "requests/s", "mean_s": "mean latency (s)", "p99_s": "p99 latency (s)"}
QUANTILES = {"median_s": 50, "p90_s": 90, "p95_s": 95, "p99_s": 99}

COMPARED = """Rate of prefill-only over each baseline's rate at the baseline's mean and p99 latency (the worse of the two), by the
baseline's rate. >: prefill-only stays below that latency up to the highest rate; <: it does not reach it at the lowest.
The target counts the paper's baselines: all but `srjf`.
""".splitlines()

SIMULATED = """Two GPUs each: `tp 2` and `pp 2` use both for one engine, the others run one engine on each and keep a user's requests together.
Times and memory are the simulator's (devices/README.md has their sources), with the scheduler that serves. No
simulation of a GPU has been compared with one. Targets: post recommendation 1.4 to 4.0 times the rate at equal mean and
p99 latency; credit verification: prompts that the paged and chunked baselines have no room for.

Post recommendation comes in two forms, since the order of the posts decides the outcome. *Users in turn*: users arrive as a Poisson
process, each with all posts at once. They stand together in the queue. First come, first served thus meets each profile
49 times in a row and finds the same tokens in the cache as calibration does. Only the order of waiting and better filled steps can
bring a gain. *In random order*: every post arrives by itself, as a Poisson process, and belongs to any of the users.
The posts have more profiles than the cache holds. In order of arrival a profile is evicted before its next post comes;
calibration first serves the posts whose profile is cached.
""".splitlines()

BATCHING = """`single` computes one request at a time, as published. `saturate`, the preset's choice, lets short requests share a step until the
fixed part of a step is a tenth of its time by the fitted cost model. `budget` fills the step's tokens. All find the same tokens
in the cache, apart from prefixes that are evicted during long waits. Rates are shares of each form's own x.
""".splitlines()

AGING = """Aging is the paper's lambda over the device's speed (of a prompt of 1,024 tokens by the fitted cost model). After a second
of waiting a request counts as shorter by the work that the device does in `aging` seconds. The paper's lambda, 500 tokens for a second
waited, is an aging of 0.1, the default, on a device of 5,000 tokens/s.
""".splitlines()


def share_of(rate):
    return f"{rate:g}x" if rate >= 0.25 else f"x/{1 / rate:g}"


def shares_of(rates):
    return ", ".join(map(share_of, rates))


def cells(point):
    """The columns FIGURES."""
    if "error" in point:
        return [point["error"].replace("|", "/"), "", "", ""]
    return [f"{point['requests_per_s']:.2f}", f"{point['mean_s']:.2f}", f"{point['p99_s']:.2f}", f"{100 * point['hits']:.0f} %"]


def curve_rows(curves):
    return [[name, share_of(point["rate"]), *cells(point)] for name, curve in curves.items() for point in curve]


def answered(curve):
    return all("error" not in point for point in curve)


def rate_at(curve, key, latency):
    """The rate at which a curve reaches a latency, between its points by the logarithm; its last rate where it stays below, None
    where it begins above."""
    last = None
    for point in curve:
        rate, value = point["rate"], point[key]
        if value > latency:
            if last is None:
                return None
            low_rate, low = last
            return low_rate * (rate / low_rate) ** (math.log(latency / low) / math.log(value / low))
        last = (rate, value)
    return last[0]


def compare(curves):
    """By baseline that has room, for each of its rates: how many times that rate prefill-only takes at the baseline's own mean and
    p99 latency, the worse of the two, as (sign, ratio); with the sign < or > the ratio is a bound."""
    own = curves["prefill-only"]
    if not answered(own):
        return {}
    lowest, highest = own[0]["rate"], own[-1]["rate"]
    found = {}
    for name, curve in curves.items():
        if name == "prefill-only" or not answered(curve):
            continue
        found[name] = {}
        for point in curve:
            rate = point["rate"]
            reached = [rate_at(own, key, point[key]) for key in ("mean_s", "p99_s")]
            if None in reached:
                found[name][rate] = ("<", lowest / rate)
            else:
                found[name][rate] = (">" if min(reached) == highest else "", min(reached) / rate)
    return found


def ratio_cell(ratio):
    sign, value = ratio
    return f"{sign} {value:.2f}".strip()


def verdict(form, ratios):
    """The number of times the target is met; `ratios` as compare gives them."""
    if not ratios:
        return f"{form.capitalize()}: no baseline has room."
    met = sum(sign != "<" and value >= TARGET for sign, value in ratios)
    behind = sum(value <= 1 if sign == "<" else value < 1 for sign, value in ratios)
    unknown = sum(value > 1 if sign == "<" else sign == ">" and value < TARGET for sign, value in ratios)
    least = ratio_cell(min(ratios, key=lambda ratio: ratio[1]))
    more = f" {unknown} more may be: the rates do not reach far enough to decide." if unknown else ""
    return f"{form.capitalize()}: {met} of {len(ratios)} ratios are at least {TARGET:g}, the target.{more} {behind} are below 1; the least is {least}."


def comparison_lines(curves):
    compared = compare(curves)
    rates = sorted(set().union(*compared.values()))
    rows = [[name, *(ratio_cell(ratios[rate]) if rate in ratios else "-" for rate in rates)] for name, ratios in compared.items()]
    return [*COMPARED, "", *table(["baseline", *map(share_of, rates)], rows)] if rows else []


def load_lines(load):
    """A load: x, each system's figures by rate, the rates at equal latency."""
    if "error" in load["at_once"]:
        return [f"prefill-only: {load['at_once']['error']}.", ""]
    runs = load["at_once"].get("runs", [])
    of_runs = f", the median of {', '.join(f'{rate:.3g}' for rate in runs)}" if len(runs) > 1 else ""
    return [f"x = {load['at_once']['requests_per_s']:.3g} requests/s{of_runs}.", "", *table(["system", "rate", *FIGURES], curve_rows(load["curves"])),
            *comparison_lines(load["curves"])]


def draw_loads(pyplot, title, name, loads):
    """Throughput, mean and p99 latency over the rate; a row of plots for each (title, load) that prefill-only answered."""
    loads = [(what, load["curves"]) for what, load in loads if load["curves"]]
    if pyplot is None or not loads:
        return []
    figure, axes = pyplot.subplots(len(loads), 3, figsize=(11, 2.8 * len(loads)), squeeze=False)
    for (what, curves), row in zip(loads, axes):
        rates = [point["rate"] for point in curves["prefill-only"]]
        for axis, (key, label) in zip(row, PLOTTED.items()):
            for system, curve in curves.items():
                points = [point for point in curve if "error" not in point]
                axis.plot([point["rate"] for point in points], [point[key] for point in points], marker="o", markersize=3, label=system)
            axis.set_xscale("log")
            axis.set_xticks(rates, list(map(share_of, rates)), fontsize=7)
            axis.set_xticks([], minor=True)
            axis.set(xlabel="rate", ylabel=label, yscale="linear" if key == "requests_per_s" else "log")
        row[0].set_title(what, fontsize=8, loc="left")
    axes[0][0].legend(fontsize=6)
    return [f"![{title}]({save(figure, OUT / name)})", ""]


def draw_aging(pyplot, measured):
    """The distribution of latencies for each aging; a plot for each (title, rows)."""
    if pyplot is None:
        return []
    figure, axes = pyplot.subplots(1, len(measured), figsize=(5.5 * len(measured), 3.5), squeeze=False)
    for (what, rows), axis in zip(measured, axes[0]):
        for row in rows:
            if "error" not in row:
                axis.plot([row[key] for key in QUANTILES], list(QUANTILES.values()), marker="o", markersize=3, label=f"{row['aging']:g}")
        axis.set(xlabel="latency (s)", ylabel="of the requests at most (%)", xlim=(0, None))
        axis.set_title(what, fontsize=8, loc="left")
        axis.legend(title="aging", fontsize=7)
    return [f"![Latencies by aging]({save(figure, OUT / 'prefill-only-load-aging.svg')})", ""]


def scaled_lines(part):
    """The differences from full size."""
    full, posts, credit = part["full"], part["posts"], part["credit"]
    at_once = f"at {shares_of(credit['rates'])}" if "rates" in credit else "all at once"
    return [f"Scaled are the lengths with the memory ({posts['scale']:g} in post recommendation, {credit['scale']:g} in credit verification),",
            f"and the counts: {posts['users']} of {full['users']} users, {posts['posts']} of {full['posts']} posts of each,",
            f"{credit['prompts']} of {full['prompts']} prompts of credit verification. So at most {posts['posts'] - 1} of {posts['posts']} posts find",
            f"their profile in the cache, at full size {full['posts'] - 1} of {full['posts']}. The rates here are {shares_of(posts['rates'])}",
            f"of {shares_of(full['rates'])} (users in turn). Posts in random order come at the rates of the table, credit verification {at_once}.", ""]


def verdict_lines(what, curves):
    compared = compare(curves)
    return [verdict(what, [ratio for name in FEASIBLE for ratio in compared.get(name, {}).values()]), ""]


def real_posts_lines(posts):
    lines = ["### Post recommendation, users in turn", "", f"The cache holds {posts['cache_blocks']} blocks, about five users.", "", *load_lines(posts)]
    if "error" in posts["at_once"]:
        return lines
    lines += [*verdict_lines("users in turn", posts["curves"]), "### Post recommendation, in random order", "",
              "Rates are shares of the same x.", "",
              *table(["system", "rate", *FIGURES], [[row["system"], share_of(row["rate"]), *cells(row)] for row in posts["shuffled"]])]
    curves = {}
    for row in posts["shuffled"]:
        curves.setdefault(row["system"], []).append(row)
    if len(curves["prefill-only"]) == 1:
        return [*lines, "There is one rate only, so no rate at equal latency.", ""]
    curves = {name: curve for name, curve in curves.items() if not name.startswith("prefill-only,")}
    return [*lines, *comparison_lines(curves), *verdict_lines("in random order", curves)]


def real_credit_lines(credit):
    shortest, longest = (credit["scale"] * tokens for tokens in (40000, 60000))
    memory, kv, more = (credit[name] / 2**20 for name in ("memory_bytes", "longest_kv_bytes", "more_kv_bytes"))
    rows = [[name, "at once", *cells(point)] for name, point in credit["at_once"].items()]
    lines = ["### Credit verification", "",
             f"{credit['prompts']} prompts of {shortest:.0f} to {longest:.0f} tokens, nothing shared, in {memory:.0f} MiB beside the weights (`--memory`); keys and",
             f"values of the longest would take {kv:.0f} MiB. For comparison the chunked baseline where {more:.0f} MiB of them fit.", "",
             *table(["system", "rate", *FIGURES], rows + curve_rows(credit["curves"]))]
    own, other = (credit["at_once"].get(name, {}) for name in ("prefill-only", "chunked fcfs in more memory"))
    if "runs" in own and "runs" in other:
        if len(own["runs"]) > 1:
            lines += [f"At once: medians of {len(own['runs'])} runs in turn (prefill-only {', '.join(f'{rate:.3g}' for rate in own['runs'])} requests/s, chunked fcfs in "
                      f"more memory {', '.join(f'{rate:.3g}' for rate in other['runs'])})."]
        lines += [f"Throughput of prefill-only over that of chunking: {own['requests_per_s'] / other['requests_per_s']:.2f}.", ""]
    return lines + (comparison_lines(credit["curves"]) if credit["curves"] else [])


def real_lines(part, pyplot):
    posts, credit = part["posts"], part["credit"]
    plots = draw_loads(pyplot, "The loads here", "prefill-only-load-here.svg", [("post recommendation, users in turn", posts), ("credit verification", credit)])
    return [f"{part['shape']}'s shape with random weights, over HTTP, on {part['cpu']}.", "", *scaled_lines(part), *plots, *real_posts_lines(posts),
            *real_credit_lines(credit)]


def summary_lines(setups):
    """Post recommendation in short, and the number of times the target is met."""
    rows, ratios = [], {}
    for setup in setups:
        for form, load in setup["posts"].items():
            of_form = ratios.setdefault(form, [])
            if not load["curves"]:
                continue
            compared = compare(load["curves"])
            for name in FEASIBLE:
                at = compared.get(name, {})
                of_form += [at[rate] for rate in SUMMARY_RATES if rate in at]
                shown = [ratio_cell(at[rate]) if rate in at else "-" for rate in SUMMARY_RATES] if at else ["no room"] * len(SUMMARY_RATES)
                rows.append([setup["title"], form, name, *shown])
    lines = ["Post recommendation in short: prefill-only's rate over the baseline's at the baseline's mean and p99 latency, by the",
             "baseline's rate (no room: some prompts do not fit):", "",
             *table(["devices, model", "posts", "baseline", *map(share_of, SUMMARY_RATES)], rows)]
    return lines + [line for form in ratios for line in (verdict(form, ratios[form]), "")]


def batching_lines(title, rows):
    return [f"### Batching: {title}", "", *BATCHING, "",
            *table(["posts", "batching", "tokens of a step", "rate", *FIGURES],
                   [[row["form"], row["batching"], row["step_tokens"], share_of(row["rate"]), *cells(row)] for row in rows])]


def retention_lines(title, rows):
    by_choice, gains = {(row["load"], row["order"], row["retention"]): row for row in rows}, []
    for row in rows:
        base = by_choice[row["load"], row["order"], "prefix"]
        if row["retention"] == "value" and answered([row, base]):
            gains.append([row["load"], row["order"], *(f"{row[key] / base[key]:.2f}" for key in PLOTTED)])
    return [f"### Retention by value: {title}", "",
            "`value` evicts only for prefixes that several of the latest requests have. Rates are shares of the x of the load's form.", "",
            *table(["load", "order", "retention", "rate", *FIGURES],
                   [[row["load"], row["order"], row["retention"], share_of(row["rate"]), *cells(row)] for row in rows]),
            "`value` over `prefix`:", "", *table(["load", "order", "req/s", "mean", "p99"], gains)]


def simulated_lines(part, pyplot):
    setups = part["setups"]
    lines = [*SIMULATED, "", *summary_lines(setups)]
    for form in setups[0]["posts"]:
        loads = [(setup["title"], setup["posts"][form]) for setup in setups]
        lines += draw_loads(pyplot, f"Post recommendation, {form}", f"prefill-only-load-{form.replace(' ', '-')}.svg", loads)
    for setup in setups:
        title = setup["title"]
        for form, load in setup["posts"].items():
            lines += [f"### Post recommendation, {form}: {title}", "", *load_lines(load)]
        if "batching" in setup:
            lines += batching_lines(title, setup["batching"])
        if "retention" in setup:
            lines += retention_lines(title, setup["retention"])
        lines += [f"### Credit verification: {title}", "", *load_lines(setup["credit"])]
    return lines


def aging_lines(data, pyplot):
    """The effect of aging, in every part that measured it."""
    measured = [(f"here, {data['real']['shape']}", data["real"]["posts"])] if "real" in data else []
    measured += [(f"simulated: {setup['title']}", setup) for setup in data.get("simulated", {"setups": []})["setups"]]
    measured = [(what, found["aging"]) for what, found in measured if "aging" in found]
    if not measured:
        return []
    lines = ["## The effect of aging", "", *AGING, "", "Post recommendation in random order.", "", *draw_aging(pyplot, measured)]
    for what, rows in measured:
        lines += [f"### Aging, {what}, rate {share_of(rows[0]['rate'])}", ""]
        lines += table(["aging", *(f"{name} s" for name in LATENCIES), "hits"], [[f"{row['aging']:g}", *aging_cells(row)] for row in rows])
    return lines


def aging_cells(row):
    if "error" in row:
        return [row["error"].replace("|", "/"), *[""] * len(LATENCIES)]
    return [*(f"{row[f'{name}_s']:.2f}" for name in LATENCIES), f"{100 * row['hits']:.0f} %"]


def write_page():
    data = json.loads(DATA.read_text())
    pyplot = load_pyplot()
    lines = ["# PrefillOnly's loads", "", "Longest inputs, chunks and job times: [prefill-only.md](prefill-only.md).", ""]
    for name, title, part_lines in (("real", "Here, scaled", real_lines), ("simulated", "Full size, simulated", simulated_lines)):
        if name in data:
            part = data[name]
            note = f" {part['note']}" if "note" in part else ""
            lines += [f"## {title}", "", f"Made by `{part['command']}` in {part['minutes']} minutes.{note}", "", *part_lines(part, pyplot)]
    lines += aging_lines(data, pyplot)
    pages.write(OUT / "prefill-only-load.md", "\n".join(lines).rstrip("\n") + "\n")


if __name__ == "__main__":
    write_page()
