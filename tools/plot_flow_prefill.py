#!/usr/bin/env python3
"""Turns the measurements of scripts/exp_flow_prefill into a page of tables and, if matplotlib is there, plots.

    python3 tools/plot_flow_prefill.py

Reads docs/results/data/flow-prefill.json; writes docs/results/flow-prefill.md and flow-prefill-*.svg. Nothing is measured here.
Its parts: `simulated`, one or two for each trace under the name of its file (with `-lengths` its own prompts too), and `real`.
"""
import json
import pathlib
import statistics

import pages
from charts import load_pyplot, save, table

OUT = pathlib.Path(__file__).resolve().parent.parent / "docs/results"
GOOD = 0.9
TARGETS = {"distserve": 4.7, "distserve-cp2k": 2.0}  # times its goodput, of flow-prefill
BASES = ["distserve", "distserve-cp2k", "distserve-cp8k"]
OVER = ["over distserve", "over cp2k", "over cp8k"]
CLASSES = ["text", "image", "search", "file"]
DEADLINES = ["first %", "between %", "both %"]
ATTAINMENT = ["in time %", *(f"{name} %" for name in CLASSES), "in-time req/s"]


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def ratio(value, base):
    return "-" if value is None or base is None else f"{value / base:.2f}"


def verdict(value, target):
    return f"{value:.2f} ({'met' if value >= target else 'not met'})"


def made_by(part):
    return ["", f"    {part['command']}", "", f"Measured on {part['date']} in {part['minutes']:.0f} minutes.", ""]


def plot(curves, title, axis, name, log=False):
    """`curves`: points [x, attainment] of each system."""
    pyplot = load_pyplot()
    if pyplot is None:
        return []
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for system, points in curves.items():
        axes.plot([x for x, _ in sorted(points)], [100 * y for _, y in sorted(points)], marker="o", markersize=3, label=system)
    axes.axhline(100 * GOOD, color="grey", linewidth=0.8)
    axes.set(xlabel=axis, ylabel="in time (%)", title=title, ylim=(0, 102))
    if log:
        axes.set_xscale("log", base=2)
    axes.legend(fontsize=7)
    return [f"![{title}, over the {axis}]({save(figure, OUT / name)})", ""]


# --- The simulated parts. ---


def bounds(setup, arrivals):
    """The ratios beside the targets, and their bounds here: each sentence from this run's figures."""
    goodputs, tightest, busy, alone = (setup[key] for key in ("goodputs", "tightest", "never_idle", "alone_ms"))
    if None in (*goodputs.values(), *tightest.values()):
        return []
    flow, base, chunked = (goodputs[name] for name in ("flow-prefill", "distserve", "distserve-cp2k"))
    most, slo_ms, layers = max(busy.values()), 1e3 * setup["text_slo_s"], setup["layers"]
    text_tokens = setup["text_tokens"]
    text, chunk, large, longest = (alone[key] for key in ("text", "2048", "8192", "longest"))
    over = {name: tightest[name] / tightest["flow-prefill"] for name in tightest}
    lost = 1 - busy["flow-prefill"] / most
    targets = "; ".join(f"{target} times {name}: {verdict(flow / goodputs[name], target)}" for name, target in TARGETS.items())
    return [f"Targets: {targets}. The tightest SLO is {over['distserve-cp2k']:.1f} times",
            f"tighter than cp2k's (published: 1.5-2.3) and {over['distserve-cp8k']:.1f} times tighter than cp8k's (2.1-3.1).", "", "Bounds on the ratios, by the figures of this run:", "",
            f"- Never idle, the best of these systems computes {most:.2f} req/s of the mix. So no scheduler can have much more than {most / base:.1f} times distserve's goodput here, or than",
            f"  {most / chunked:.1f} times cp2k's. flow-prefill's goodput is {100 * flow / most:.0f} % of it, distserve's {100 * base / most:.0f} %, cp2k's {100 * chunked / most:.0f} %.",
            f"- cp2k never idle computes {busy['distserve-cp2k']:.2f} req/s: {100 * (1 - busy['distserve-cp2k'] / most):.0f} % less. Its goodput is {100 * chunked / busy['distserve-cp2k']:.0f} % of that; if the two are close, it lacks",
            "  throughput, not a better order.",
            f"- A text prompt of {text_tokens} tokens takes {text:.0f} ms alone, {slo_ms / text:.1f} times less than its deadline; a chunk of 2,048 tokens {chunk:.0f} ms, of 8,192 {large:.0f} ms.",
            f"  The deadline leaves {slo_ms - text:.0f} ms for waiting behind such a chunk. A text prompt that arrives as a chunk of 8,192 begins meets a deadline of",
            f"  {(large + text) / slo_ms:.2f} times this one at best, and one that runs at once {text / slo_ms:.2f} times. Cp8k's tightest factor is {tightest['distserve-cp8k']:.2f}, flow-prefill's"
            f" {tightest['flow-prefill']:.2f}.",
            f"- A layer of the longest prompt takes {longest / layers:.0f} ms, a ticket at most 1, and a stop costs nothing in the simulation. So op-tile gains at most the",
            f"  difference over layers, out of {slo_ms - text:.0f} ms.",
            f"- flow-prefill never idle computes {busy['flow-prefill']:.2f} req/s, {100 * lost:.0f} % less than the best. A token costs {1e3 * text / text_tokens:.0f} us in a text prompt alone, {1e3 * chunk / 2048:.0f} us in a",
            f"  pass of 2,048 and {1e3 * large / 8192:.0f} us in one of 8,192 (attention grows with the prompt): larger batches save these differences. It batches up to G = {setup['budget']}",
            "  tokens, and only as far as the most urgent request's deadline allows; distserve batches up to 16,384 tokens of any waiting requests.",
            *([] if arrivals is None else
              [f"- The trace's gaps spread {arrivals['gap_cv']:.1f} times their mean (a Poisson process: 1), and its busiest tenth of a run of {arrivals['count']} requests has {arrivals['busiest']:.1f}",
               f"  times the mean rate. While it lasts, a mean of flow-prefill's {flow:.2f} req/s is {flow * arrivals['busiest']:.2f} req/s, of {most:.2f} that can be computed."]), ""]


def over_layers(setup):
    """What stopping within a layer gains over stopping between layers."""
    (flow, layers), (flow_slo, layers_slo) = ([setup[key][name] for name in ("flow-prefill", "layer-level")] for key in ("goodputs", "tightest"))
    if None in (flow, layers, flow_slo, layers_slo):
        return []
    return [f"Stopping within layers over stopping between them: {flow / layers:.2f} times the goodput, deadlines {layers_slo / flow_slo:.2f} times as tight.", ""]


def setup_section(setup, name, arrivals):
    goodputs = setup["goodputs"]
    rows = [[system, cell(goodput), *(ratio(goodput, goodputs.get(base)) for base in BASES), cell(setup["tightest"][system]), cell(setup["never_idle"][system])]
            for system, goodput in goodputs.items()]
    stem = f"flow-prefill-{setup['shape']}" + ("" if name == "simulated" else f"-{name}")
    budget = setup["budget_curve"]
    return [f"### {setup['name']}", "", "Tokens per second of 256-token prompts by the tokens of a pass: "
            + ", ".join(f"{tokens}: {speed:.0f}" for tokens, speed in budget.items()) + ".",
            f"The smallest within 5 % of the fastest is the budget G unless another is named: {setup['budget']}.", "",
            *table(["system", "goodput req/s", *OVER, f"tightest SLO at {setup['slo_rate']:.2f} req/s", "never idle req/s"], rows),
            *over_layers(setup), *bounds(setup, arrivals),
            *plot(setup["rate_points"], setup["name"], "requests/s", f"{stem}.svg"),
            *plot(setup["slo_points"], setup["name"], "factor on all deadlines", f"{stem}-slo.svg", True)]


def ablation_section(found):
    return [f"### Ablations: {found['name']}", "", *table(["system", "goodput req/s"], [[name, cell(goodput)] for name, goodput in found["goodputs"].items()])]


def beside_section(found, here=None):
    """Decode beside long prefills. `here`: the real part, whose budget curve tells what pieces cost; None in the simulation."""
    rows = [[name, f"{row['prefill_tokens_per_s']:.0f}", f"{row['median_itl_ms']:.0f}", f"{row['p99_itl_ms']:.0f}", f"{100 * row['beside']:.0f}"] for name, row in found["systems"].items()]
    return ["### Decode beside long prefills", "", f"{found['chats']} sequences decode and ask for a token each {found['tbt_ms']:.0f} ms; {found['count']} prompts of {found['tokens']} tokens come at once, a second later.",
            "Between tokens: all gaps of the sequences. The last column is the share of the gaps' time that passes beside the prompts.", "",
            *table(["system", "prefill tokens/s", "median ms between tokens", "p99", "beside %"], rows), *(sharing_lines(found, here) if here else simulated_sharing(found))]


def inserted_over_mixed(found):
    """The figures of both ways, and how many times faster the prefill is with steps of decodes inserted."""
    own, mixed = (found["systems"][f"flow-prefill, decodes {name}"] for name in ("inserted", "mixed in"))
    return own, mixed, own["prefill_tokens_per_s"] / mixed["prefill_tokens_per_s"]


def simulated_sharing(found):
    own, mixed, faster = inserted_over_mixed(found)
    return [f"On a GPU inserted steps were expected to win, as they leave the prefill uncut: simulated, the prefill runs at {faster:.2f} times the speed of mixed steps,",
            f"with a p99 of {own['p99_itl_ms']:.0f} ms between tokens against {mixed['p99_itl_ms']:.0f}. An inserted step reads all weights again; a mixed one shares that reading with the prompt's chunk.", ""]


def sharing_lines(found, here):
    """Why one way of decoding beside a prefill does better here, as far as the figures tell."""
    own, mixed, faster = inserted_over_mixed(found)
    chunks = here["budget"]["chunks"]
    small, fast = chunks[0], max(chunks, key=lambda point: point["tokens_per_s"])
    lines = [f"A CPU reads all weights once more for each inserted step, so mixed steps were expected to win here. Inserted, the prefill runs at {faster:.2f} times the speed of mixed",
             f"steps, with a p99 of {own['p99_itl_ms']:.0f} ms between tokens against {mixed['p99_itl_ms']:.0f}. An inserted step is due about once in {found['tbt_ms']:.0f} ms, so the further reading is paid that often and no",
             "more, and the prefill between two of them is not cut. A mixed step saves that reading, but cuts the prompt to pieces that fit the interval. In pieces of",
             f"{small['chunk_tokens']} tokens a prompt runs at {small['tokens_per_s']:.0f} tokens/s, of {fast['chunk_tokens']} at {fast['tokens_per_s']:.0f}. All tokens of a mixed step, the decodes' included, come only at its end."]
    if faster < 1:
        lines.append("In this run the saving is the greater of the two.")
    return [*lines, "The GPU's side of this question is simulated only (above); no GPU was measured.", ""]


def by_cost_line(figures, key, what):
    """Where the cost model's choice lies between the fixed ones."""
    own, mixed, chosen = (figures[f"flow-prefill, {name}"][key] for name in ("decodes inserted", "decodes mixed in", "by cost"))
    if None in (own, mixed, chosen):
        return ""
    return f"{what}: by cost {chosen:.2f}, inserted {own:.2f}, mixed {mixed:.2f} ({100 * chosen / max(own, mixed, 1e-9):.0f} % of the better)."


def simulated_colocated(found):
    rows = [[name, cell(row["goodput"]), *deadline_cells(row)] for name, row in found["systems"].items()]
    return [f"### Prefill and decode on one device: {found['name']}", "", f"{found['count']} requests, {found['tokens']} tokens each; TTFT deadlines times {found['ttft_factor']}, between tokens 0.1 s (text, image) and",
            "0.2 s (search, file), on average over an answer, both to be met (published: up to 1.6 times better attainment between tokens).", f"In time, at {found['rate']:.2f} req/s, 1.25 times cp2k's goodput: the first token, those after it, and both.", "",
            *table(["system", "goodput req/s", *DEADLINES], rows), by_cost_line(found["systems"], "goodput", "Goodput"), ""]


def lengths_lines(lengths):
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in lengths["shares"].items())
    return [f"The prompts have the trace's own lengths: {lengths['mean']:,.0f} tokens in the mean, {lengths['median']:,} in the median, {lengths['p99']:,} at the 99th percentile; one token out each, no prefix",
            f"shared. Up to 2,000 tokens they have text's deadline, up to 12,000 search's, beyond that file's: {shares}. Prompts of more than 38,000 tokens,",
            f"{100 * lengths['left_out']:.1f} % of the trace, are left out, since no deadline is published for them.", ""]


def simulated_lines(part, name):
    found = part["figures"]
    what = "arrivals and lengths" if "lengths" in found else "arrivals"
    arrivals = "Poisson arrivals" if name == "simulated" else f"{what} of {name.removesuffix('-lengths')}.csv"
    spread = "" if name == "simulated" else ", equal arrival times spread up to the next"
    lines = [f"## Full size, simulated: {arrivals}", *made_by(part), f"A800 80 GB; {found['count']} requests, {arrivals}{spread}; the simulator's times (devices/README.md has their sources).",
             "Published: goodput 4.7-5.6 times distserve, up to 2.0 times cp2k and 4.5 times cp8k; with the mixture of experts up to 1.6 times",
             "cp2k and 2.4 times cp8k. No deadlines are published for the latter, so it has those of the 8B model. A step reads the weights of every expert",
             "that one of its tokens goes to. The tightest SLO is a factor on all deadlines, at three quarters of cp2k's goodput; smaller is",
             f"better. Both are found by bisection, whose last points lie {found['bisection_percent']:.1f} % apart. A difference of one or two of those says nothing.",
             "Never idle: requests per second where 64 are always there (a closed loop). distserve batches whole prompts up to 16,384 tokens, as its",
             "own scheduler would; \"single\" takes one prompt at a time.", "", *(lengths_lines(found["lengths"]) if "lengths" in found else [])]
    for setup in found["setups"]:
        lines += setup_section(setup, name, found["arrivals"])
    for ablation in found.get("ablations", []):
        lines += ablation_section(ablation)
    if "ablations" in found:
        lines += ["By the algorithm a batch may take until its most urgent request's deadline (`src/sched/batching/slo_batch.h`), and all of it is answered at its end. So batching",
                  "spends the slack of that request, which then misses its deadline if anything stops the batch. Without batching it keeps its slack.", ""]
        lines += beside_section(found["beside"]) + simulated_colocated(found["colocated"])
    return lines


# --- The real part. ---


def deadline_cells(row):
    """The columns DEADLINES: what share met that of the first token, of those after it, and both."""
    return [f"{100 * row[name]:.0f}" for name in ("ttft_attainment", "tpot_attainment", "slo_attainment")]


def attainment_cells(row):
    """The columns ATTAINMENT: what share met its deadline, of all and of each class, and how many a second did."""
    shares = [f"{100 * row['classes'][name]:.0f}" if name in row["classes"] else "" for name in CLASSES]
    interval = f" ({' to '.join(f'{100 * edge:.0f}' for edge in row['interval'])})" if "interval" in row else ""
    return [f"{100 * row['slo_attainment']:.0f}{interval}", *shares, f"{row['in_time_per_s']:.2f}"]


def budget_lines(found):
    batches = sorted({point["batch"] for point in found["batches"]})
    by_prompt = {}
    for point in found["batches"]:
        by_prompt.setdefault(point["prompt_tokens"], {})[point["batch"]] = point["tokens_per_s"]
    return ["### The token budget", "", "Prompt tokens per second, by the length of the prompts and how many of them share a pass:", "",
            *table(["prompt", *map(str, batches)], [[prompt, *(f"{row[batch]:.0f}" if batch in row else "" for batch in batches)] for prompt, row in sorted(by_prompt.items())]),
            f"One prompt of {found['chunks'][0]['prompt_tokens']} tokens in chunks:", "",
            *table(["chunk", "tokens/s"], [[point["chunk_tokens"], f"{point['tokens_per_s']:.0f}"] for point in found["chunks"]]),
            f"The smallest batch within 5 % of the fastest has {found['suggested_tokens']} tokens: the budget G below. It is measured on this processor, not scaled from a published one.", ""]


def held_and_missed(rows, capacity):
    """Of each system: the highest rate with 90 % in time, of those that can be computed in the long run, None where none, and the
    least one above it without, None where none."""
    edges = {}
    for system in dict.fromkeys(row["system"] for row in rows):
        points = {row["rate"]: row["slo_attainment"] for row in rows if row["system"] == system}
        held = max((rate for rate, value in points.items() if value >= GOOD and rate <= 1.001 * capacity), default=None)
        edges[system] = held, min((rate for rate, value in points.items() if value < GOOD and (held is None or rate > held)), default=None)
    return edges


def interpolated(rows, system, held, missed, capacity):
    """The rate at which the share in time crosses 90 %, on the line between the two; None where either is not known."""
    if held is None or missed is None:
        return None
    points = {row["rate"]: row["slo_attainment"] for row in rows if row["system"] == system}
    return min(capacity, held + (missed - held) * (points[held] - GOOD) / (points[held] - points[missed]))


def real_verdict(edges, base, target):
    """The ratio of two rates that held, and between what the ratio of the goodputs lies, as the rates are steps."""
    (flow, flow_missed), (held, missed) = edges["flow-prefill"], edges[base]
    if flow is None:
        return f"{target} times {base}: flow-prefill held none of these rates"
    least = f"at least {flow / missed:.2f}" if missed else "no bound below"
    most = f"below {flow_missed / held:.2f}" if held and flow_missed else "no bound above"
    if held:
        return f"{target} times {base}: {verdict(flow / held, target)}, {least}, {most}"
    return f"{target} times {base}: more than {flow / missed:.2f} ({'met' if flow / missed >= target else 'open'}): {base} held none of these rates"


def backlog_lines(here):
    """Why a rate above what can be computed may hold."""
    capacity, most = here["capacity"], max(row["share"] for row in here["rates"])
    if most <= 1:
        return []
    backlog_s = here["count"] / capacity * (1 - 1 / most)
    return [f"Rates above {capacity:.2f} req/s count for no goodput, as they cannot hold for long: at {most:g} times that the last request finds {backlog_s:.0f} s of work",
            f"before it, and the longest deadline is {here['longest_deadline_s']:.0f} s."]


def rates_section(here):
    found, capacity = here["rates"], here["capacity"]
    rows = [[row["system"], f"{row['share']:g}", *attainment_cells(row), f"{row['p99_ttft_ms']:.0f}", "-" if not row["prediction_p95"] else f"{100 * row['prediction_p95']:.0f}",
             f"{row['event_rounds']:.2f}", f"{row['other_rounds']:.2f}", f"{row['commands']:.2f}", row["stolen"]] for row in sorted(found, key=lambda row: row["share"])]
    edges, curves = held_and_missed(found, capacity), {}
    for row in found:
        curves.setdefault(row["system"], []).append([row["rate"], row["slo_attainment"]])
    between = {name: interpolated(found, name, held, missed, capacity) for name, (held, missed) in edges.items()}
    good = [[name, f"{held:.2f}" if held else f"below {missed:.2f}", f"{between[name]:.2f}" if between[name] else "", *(ratio(held, edges[base][0]) for base in BASES)] for name, (held, missed) in edges.items()]
    return ["### Attainment over the rate", "", "In-time req/s: requests per second that met their deadline at that load; the goodput is in the table below. Rounds and commands are per request:",
            "rounds of the scheduler that an arrival or a completion caused, those that a timer or a cancellation caused, and its commands to the executor (submit, preempt,", "resume). Published: about two rounds per request, fewer commands.", "",
            *table(["system", "rate", *ATTAINMENT, "TTFT p99 ms", "prediction p95 error %", "rounds", "other rounds", "commands", "stolen %"], rows),
            "Stolen: the share of both cores' time that the host of this virtual machine gave to others meanwhile.", "",
            f"The highest of these rates with 90 % in time; {capacity:.2f} req/s are computed at most. Lower ones were run only for systems that had not reached that share, higher ones for those that had:", "",
            *table(["system", "goodput req/s", "interpolated", *OVER], good),
            "Interpolated: where the line from that rate's share in time to the next one's crosses 90 %.",
            "Targets: " + "; ".join(real_verdict(edges, base, target) for base, target in TARGETS.items()) + ".",
            "The goodput lies between a rate that held and the next that did not, hence the bounds.",
            *backlog_lines(here), "A system may hold at a rate and miss at a lower one: the machine's speed moves between runs, and each is one run.", "",
            *plot(curves, "Scaled, on this processor", "requests/s", "flow-prefill-here.svg")]


def slo_section(found):
    rows = [[row["system"], f"{row['factor']:g}", *attainment_cells(row)] for row in found["rows"]]
    curves = {}
    for row in found["rows"]:
        curves.setdefault(row["system"], []).append([row["factor"], row["slo_attainment"]])
    return [f"### Attainment over the deadlines, at rate {found['share']:g}", "", "All deadlines times a factor: tighter ones for systems that had 90 % in time with the one before, wider ones for systems that did not reach 90 % with 1.", "", *table(["system", "factor", *ATTAINMENT], rows),
            *plot(curves, "Scaled, on this processor", "factor on all deadlines", "flow-prefill-here-slo.svg", True)]


def real_ablations(found):
    return [f"### Ablations, at rate {found['share']:g}", "", *table(["system", *ATTAINMENT], [[row["system"], *attainment_cells(row)] for row in found["rows"]])]


def real_colocated(found, slo_scale):
    rows = [[row["system"], f"{row['share']:g}", *deadline_cells(row), f"{row['p99_itl_ms']:.0f}"] for row in found["rows"]]
    lines = ["### Prefill and decode together", "", f"The mix with {found['tokens']} tokens each; TTFT deadlines times {found['ttft_factor']}, between tokens {100 * slo_scale:.0f} ms (text, image) and",
             f"{200 * slo_scale:.0f} ms (search, file), on average over an answer. In time, in percent: the first token, those after it, and both.", "",
             *table(["system", "rate", *DEADLINES, "p99 ms between tokens"], rows)]
    for share in dict.fromkeys(row["share"] for row in found["rows"]):
        by_system = {row["system"]: row for row in found["rows"] if row["share"] == share}
        lines += [by_cost_line(by_system, "slo_attainment", f"- Both in time at rate {share:g}")]
    return [*lines, ""]


def prediction_section(found):
    met = all(100 * row["errors"][-1] < 10 for row in found["rows"])
    rows = [[row["name"], *(f"{100 * error:.1f}" for error in row["errors"]), "" if row["spread"] is None else f"{100 * row['spread']:.0f}", row["stolen"]] for row in found["rows"]]
    return ["### Prediction of the time to the first token", "", f"{found['count']} prompts one after the other, nothing else running: \\|predicted / real - 1\\| from a prompt's first step to its token, in percent",
            f"(target: p95 under 10, {'met' if met else 'not met'}). No model of lengths can predict two further columns: the distance of the 95th percentile of one", "prompt's own times from their median, and the share of the processor's time that was stolen.", "",
            *table(["prompt tokens", "median error %", "p95 error %", "p95 over median, same prompt %", "stolen %"], rows)]


def checks_section(single, found):
    runs = single["runs"]
    rows = [[name, f"{statistics.median(values):.3f}", f"{min(values):.3f}", f"{max(values):.3f}", f"{single['signals'][name]:.0f}"] for name, values in runs.items()]
    lost = [1 - on / off for on, off in zip(runs["op-tile"], runs["none"])]
    median, doubt = statistics.median(lost), 2 * statistics.stdev(lost) / len(lost) ** 0.5
    told = "met" if median <= 0.01 else "not met" if statistics.mean(lost) - doubt > 0.01 else f"cannot be told, as twice the standard error of their mean is {100 * doubt:.1f} %"
    return ["### The cost of the checks", "", f"One class, one SLO over HTTP: {single['count']} search prompts, {single['concurrency']} at a time, flow-prefill with `--preempt-granularity op-tile` and `none`. Both servers are",
            f"up all the time and are asked in turn, {len(lost)} times each, the order changing.", "",
            *table(["granularity", "median req/s", "least", "most", "signals in all"], rows),
            f"Lost by the checks, of each pair of runs: {100 * median:+.2f} % in the median ({100 * min(lost):+.2f} to {100 * max(lost):+.2f}); within 1 %: {told}.", "",
            "By count a check is one load before each ticket of up to about a millisecond. The same in one process, whole prompts of one kind, with a check before each ticket and without, in turn; medians "
            f"(target: within 1 %, met by {sum(row['lost'] <= 0.01 for row in found)} of {len(found)}).", "",
            *table(["prompt tokens", "tokens/s with checks", "without", "lost"],
                   [[row["tokens"], f"{row['checked_tokens_per_s']:.0f}", f"{row['unchecked_tokens_per_s']:.0f}", f"{100 * row['lost']:+.2f} %"] for row in found])]


def real_lines(part):
    here = part["figures"]
    lines = ["## Here, scaled", *made_by(part), f"Qwen3-0.6B's shape with random weights, over HTTP: lengths times {here['scale']:g}, deadlines times {here['slo_scale']:.2f} (a text prompt alone",
             f"takes {1e3 * here['isolated_s']:.0f} ms here, {1e3 * here['simulated_s']:.0f} ms in the simulation), {here['count']} requests. Rates are shares of {here['capacity']:.2f} requests/s, the capacity of this processor",
             "at the speed of its fastest batch below.", "", *budget_lines(here["budget"]), *rates_section(here), *slo_section(here["slo"])]
    if here["ablations"]:
        lines += real_ablations(here["ablations"])
    return [*lines, *beside_section(here["beside"], here), *real_colocated(here["colocated"], here["slo_scale"]), *prediction_section(here["prediction"]),
            *checks_section(here["single_slo"], here["checks"])]


def write_page(parts):
    page = ["# FlowPrefill's experiments", "", "[preemption.md](preemption.md) has the time from a signal to a prefill's standstill, by granularity and length of the prompt.", ""]
    for name in sorted(parts, key=lambda name: (name == "real", name != "simulated", name)):
        part = parts[name]
        page += real_lines(part) if name == "real" else simulated_lines(part, name)
    path = OUT / "flow-prefill.md"
    pages.write(path, "\n".join(page))
    print(path)


if __name__ == "__main__":
    write_page(json.loads((OUT / "data/flow-prefill.json").read_text()))
