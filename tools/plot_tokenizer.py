#!/usr/bin/env python3
"""Turns the results of scripts/bench_tokenizer into a page and, if matplotlib is there, a plot.

    python3 tools/plot_tokenizer.py [DIR]        # default: docs/results

Reads DIR/data/tokenizer: machine.txt, skein-N.json and reference-N.json of each round; writes DIR/tokenizer.md and
DIR/tokenizer.svg. Nothing is measured here.
"""
import json
import pathlib
import statistics
import sys

import pages

# Times faster than the reference that each text must reach: the ratios of the Prelude paper, doubled where the paper is
# weak. The second figure is the paper's.
TARGETS = {
    "english-5": (11.9, 11.9), "english-51": (12.9, 12.9), "chinese-90": (11.0, 11.0),
    "english-674": (7.0, 3.5), "code-470": (7.0, 3.5), "mixed-641": (4.8, 2.4), "chat-212": (2.8, 1.4),
    "english-2025": (6.7, 6.7), "english-4000": (8.3, 8.3), "english-8000": (22.0, 22.0),
    "english-32000": (32.6, 32.6), "english-64000": (37.3, 37.3), "english-200000": (68.9, 68.9),
    "code-16000": (33.3, 33.3), "chat-21370": (19.0, 9.5), "chat-85480": (15.2, 7.6),
    "chinese-31998": (15.8, 15.8),
}
BATCH_TARGETS = {1: 3.2, 4: 2.0, 16: 2.9, 64: 3.5}
CONCURRENT_TARGET, DECODE_TARGET, STREAM_TARGET, LOAD_TARGET = 2.7, 4.0, 2.0, 1.0


def median(rounds, get):
    return statistics.median(get(r) for r in rounds)


def target_of(name):
    return TARGETS[name.removesuffix("-repeated").removesuffix("-distinct")]


class Report:
    def __init__(self, data):
        self.skein = [json.loads(p.read_text()) for p in sorted(data.glob("skein-*.json"))]
        self.reference = [json.loads(p.read_text()) for p in sorted(data.glob("reference-*.json"))]
        self.machine = [line.split("\t") for line in (data / "machine.txt").read_text().splitlines()]
        self.misses = []

    def pair(self, get_skein, get_reference):
        """Medians over the rounds: ours, the reference's, and the ratio within a round."""
        ratios = [get_reference(r) / get_skein(s) for s, r in zip(self.skein, self.reference)]
        return median(self.skein, get_skein), median(self.reference, get_reference), statistics.median(ratios)

    def judged(self, what, ratio, target):
        if ratio >= target:
            return f"{ratio:.1f}"
        self.misses.append(f"{what}: {ratio:.1f} times, wanted {target}")
        return f"**{ratio:.1f}**"

    def rows(self, kind, empty_key, target):
        for i, row in enumerate(self.skein[0][kind]):
            ours, whole, _ = self.pair(lambda s: s[kind][i]["us"], lambda r: r[kind][i]["us"])
            _, net, ratio = self.pair(lambda s: s[kind][i]["us"], lambda r: r[kind][i]["us"] - r[empty_key])
            yield row, ours, whole, net, ratio, self.judged(f"{kind} {row['name']}", ratio, target(row["name"]))

    def encode_table(self):
        lines = ["| text | chars | tokens | Skein us | MB/s | HuggingFace us | of it the call | times faster | wanted |"
                 " paper |", "|---|" + "---:|" * 9]
        for row, ours, whole, net, _, ratio in self.rows("encode", "encode_empty_us", lambda n: target_of(n)[0]):
            wanted, paper = target_of(row["name"])
            lines.append(
                f"| {row['name']} | {row['chars']:,} | {row['tokens']:,} | {ours:.2f} | {row['bytes'] / ours:.0f} |"
                f" {whole:.1f} | {100 * (whole - net) / whole:.1f} % | {ratio} | {wanted} | {paper} |")
        return lines

    def decode_table(self):
        lines = ["| text | tokens | Skein us | HuggingFace us | of it the call | times faster |",
                 "|---|" + "---:|" * 5]
        for row, ours, whole, net, _, ratio in self.rows("decode", "decode_empty_us", lambda n: DECODE_TARGET):
            lines.append(f"| {row['name']} | {row['tokens']:,} | {ours:.2f} | {whole:.1f} |"
                         f" {100 * (whole - net) / whole:.1f} % | {ratio} |")
        return lines

    def other_table(self):
        lines = ["| what | Skein | HuggingFace | times faster | wanted |", "|---|" + "---:|" * 4]

        def add(what, unit, get_skein, get_reference, target):
            ours, theirs, ratio = self.pair(get_skein, get_reference)
            wanted = "" if target is None else str(target)
            judged = f"{ratio:.1f}" if target is None else self.judged(what, ratio, target)
            lines.append(f"| {what} | {ours:.4g} {unit} | {theirs:.4g} {unit} | {judged} | {wanted} |")

        for i, row in enumerate(self.skein[0]["batch"]):
            add(f"batch of {row['size']}", "us", lambda s: s["batch"][i]["us"],
                lambda r: r["batch"][i]["us"] - r["batch_empty_us"], BATCH_TARGETS[row["size"]])
        add("8 threads x 100, each call", "us", lambda s: s["concurrent"]["us_per_encode"],
            lambda r: r["concurrent"]["us_per_encode"] - r["encode_empty_us"], CONCURRENT_TARGET)
        add("streamed decoding, each token", "us", lambda s: s["stream_decode_us"],
            lambda r: r["stream_decode_us"] - r["stream_empty_us"], STREAM_TARGET)
        add("load", "ms", lambda s: s["load_ms"], lambda r: r["load_ms"], LOAD_TARGET)
        add("200,000 characters as the first text after a load", "us", lambda s: s["first_sight"]["us"],
            lambda r: r["first_sight"]["us"], None)
        add("a word of 1,000,000 letters a", "us", lambda s: s["one_letter"]["us"],
            lambda r: r["one_letter"]["us"], None)
        return lines

    def page(self, has_plot):
        encode, decode, other = self.encode_table(), self.decode_table(), self.other_table()
        slowest = min((row["bytes"] / median(self.skein, lambda s: s["encode"][i]["us"]), row["name"])
                      for i, row in enumerate(self.skein[0]["encode"])
                      if row["name"].startswith("english") and row["name"].endswith("distinct"))
        first = self.skein[0]["first_sight"]["chars"] / median(self.skein, lambda s: s["first_sight"]["us"])
        lines = [
            "# The tokenizer, measured", "",
            "Written by `scripts/bench_tokenizer`; the raw figures are in `data/tokenizer/`.", "",
            *[f"- {key}: {value}" for key, value in self.machine],
            f"- HuggingFace `tokenizers` {self.reference[0]['tokenizers']}, from Python; "
            f"{len(self.skein)} turns of each program, medians, ratios within a turn", "",
            "Every text had the same ids from both before anything was timed, and Skein's own gate had passed (known cases,"
            " decoding, streamed decoding, batches). Times of single calls are CPU time of the calling thread, so that"
            " other programs on the machine count less; batches and concurrent calls count the time that passes. Both"
            " programs have seen the text before, so their caches of words are warm, except in the row that says"
            " otherwise. \"Of it the call\" is the cost of the same Python call for an empty text or no ids. It is"
            " subtracted before the ratio is taken. Python's time for a list of ids is not subtracted. HuggingFace's"
            " `encode` makes offsets and masks along with the ids, Skein's call ids alone.", "",
            "Long texts come in two forms: one short text over and over, and sentences that never repeat (generated from a"
            " fixed vocabulary, with names and numbers that occur once). \"Wanted\" is the ratio that this project set"
            " itself, \"paper\" the one that the Prelude paper reports for a text of that length and kind.", "",
            f"Long English text that does not repeat: at least {slowest[0]:.0f} MB/s on one core ({slowest[1]}),"
            f" {first:.0f} MB/s when it is the first text that a fresh tokenizer sees.", "",
            "## Encoding", "", *encode, "", "## Decoding", "",
            f"Wanted: {DECODE_TARGET:.0f} times faster in every row.", "", *decode, "", "## Other calls", "", *other, ""]
        if has_plot:
            lines += ["![Times faster than HuggingFace by text](tokenizer.svg)", ""]
        lines += ["## Missed targets", "", *([f"- {m}" for m in self.misses] or ["Nothing."]), "",
                  "## To repeat", "", "    make build && scripts/setup tests plots && scripts/bench_tokenizer",
                  "    build/release/bin/skein bench tokenizer DIR    # Skein alone", ""]
        return "\n".join(lines)

    def plot(self, path):
        try:
            import matplotlib
        except ImportError:
            print("no matplotlib: no plot (scripts/setup plots)", file=sys.stderr)
            return False
        matplotlib.use("svg")
        matplotlib.rcParams["svg.hashsalt"] = "skein"
        from matplotlib import pyplot
        rows = list(self.rows("encode", "encode_empty_us", lambda n: 0))
        names = [row["name"] for row, *_ in rows]
        figure, axes = pyplot.subplots(figsize=(9, 0.27 * len(names) + 1))
        places = range(len(names))
        axes.barh(places, [ratio for *_, ratio, _ in rows], color="#4878a8", label="Skein")
        axes.scatter([target_of(n)[0] for n in names], places, color="#c04040", marker="|", s=90, label="wanted")
        axes.set_yticks(places, names, fontsize=7)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("times faster than HuggingFace tokenizers, one thread")
        axes.legend(loc="lower right")
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        return True


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    report = Report(out / "data" / "tokenizer")
    has_plot = report.plot(out / "tokenizer.svg")
    pages.write(out / "tokenizer.md", report.page(has_plot))
    print(f"{out}/tokenizer.md")
    for miss in report.misses:
        print("missed:", miss)


if __name__ == "__main__":
    main()
