"""Measures how much longer a token of an answer takes under a grammar than without one:

    python3 tools/structured_cost.py MODEL_DIR [--rounds N] [--threads N] [--port PORT] [--json OUT]

MODEL_DIR: a chat model. A server of its own answers with one thread, 1 and 8 requests at a time. Free answers and those under a
schema, any JSON and an expression come in turns, in another order in each round; every one has the same number of
tokens, since no text of these grammars is shorter. The first round warms up and does not count. A figure is the
time of the answers of a turn by the tokens of one of them, the median of the rounds; a ratio is the median of the
rounds' own. Processor time is the server's, so other work on the machine stretches it less than the clock's. The
second table is bench/grammar_bench: a mask and a compilation alone, on one thread.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from serving import ROOT, Server, StolenTime, processor  # noqa: E402: beside this script, not packages

BENCH = ROOT / "build/release/bin/grammar_bench"
NUM_TOKENS = 128
LOADS = (1, 8)  # requests at a time
PERSON = {"type": "object", "additionalProperties": False, "required": ["kind", "name", "age", "job", "languages"],
          "properties": {"kind": {"enum": ["person", "place"]}, "name": {"type": "string", "maxLength": 40},
                         "age": {"type": "integer", "minimum": 0, "maximum": 130},
                         "job": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                         "languages": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4}}}
KINDS = {
    "free": {"ignore_eos": True},
    "schema": {"structured_outputs": {"json": {"type": "array", "items": PERSON, "minItems": NUM_TOKENS}}},
    "any JSON": {"structured_outputs": {"json": {"type": "array", "minItems": NUM_TOKENS}}},
    "expression": {"structured_outputs": {"regex": r"(\d{3}-\d{4}( ext\. \d{1,5})?, ){%d}" % NUM_TOKENS}},
}


def answer(url, kind, number):
    body = {"messages": [{"role": "user", "content": f"Invent a list of people, as JSON. List {number}."}],
            "max_tokens": NUM_TOKENS, "temperature": 0, **KINDS[kind]}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        told = json.loads(response.read())
    if told["usage"]["completion_tokens"] != NUM_TOKENS:
        raise RuntimeError(f"{kind}: {told['usage']['completion_tokens']} tokens, not {NUM_TOKENS}: "
                           + told["choices"][0]["message"]["content"][-200:])


def processor_ms(pid):
    """What the threads of a process have computed so far."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def turn_ms(server, kind, load):
    """Milliseconds for each token of an answer, of `load` answers at a time: by the clock, and of the processor."""
    begin, begin_ms = time.perf_counter(), processor_ms(server.process.pid)
    with concurrent.futures.ThreadPoolExecutor(load) as pool:
        list(pool.map(lambda number: answer(server.url, kind, number), range(load)))
    clock_ms = (time.perf_counter() - begin) * 1000
    return [ms / NUM_TOKENS for ms in (clock_ms, processor_ms(server.process.pid) - begin_ms)]


def measure(server, rounds):
    """{load: {kind: [(milliseconds by the clock, of the processor) by round]}}"""
    times = {load: {kind: [] for kind in KINDS} for load in LOADS}
    for number in range(rounds + 1):
        kinds = list(KINDS)
        kinds = kinds[number % len(kinds):] + kinds[:number % len(kinds)]
        for load in LOADS:
            for kind in kinds:
                taken = turn_ms(server, kind, load)
                if number > 0:
                    times[load][kind].append(taken)
    return times


def masks(model):
    """{case: (microseconds of a mask, milliseconds of a compilation)}: medians of grammar_bench."""
    told = json.loads(subprocess.run(
        [BENCH, model, "--benchmark_format=json", "--benchmark_repetitions=5",
         "--benchmark_report_aggregates_only=true"], check=True, capture_output=True, text=True).stdout)
    medians = {entry["run_name"].split("/process_time")[0]: entry for entry in told["benchmarks"]
               if entry["aggregate_name"] == "median"}
    return {name.split("/")[1]: (entry["per_token"] * 1e6, medians[name.replace("mask", "compile")]["cpu_time"])
            for name, entry in medians.items() if name.startswith("mask/")}


def print_table(times, which, title):
    print(f"\n| {title} | " + " | ".join(f"{n} at a time, ms/token | ratio" for n in LOADS) + " |")
    print("|---|" + "---:|---:|" * len(LOADS))
    for kind in KINDS:
        cells = []
        for load in LOADS:
            own, free = ([taken[which] for taken in times[load][of]] for of in (kind, "free"))
            ratio = statistics.median(a / b for a, b in zip(own, free))
            cells.append(f"{statistics.median(own):.2f} | {ratio:.3f}")
        print(f"| {kind} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--port", type=int, default=18431)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with Server(options.model, options.port, "--decision-lora", "none", "--max-model-len", 1024,
                "--threads", options.threads) as server, \
            StolenTime() as stolen:
        times = measure(server, options.rounds)
    alone = masks(options.model)
    print(f"{processor()}, {options.threads} thread(s), {options.rounds} rounds, {NUM_TOKENS} tokens an answer, "
          f"{stolen.share:.1%} of the processor's time stolen")
    print_table(times, 1, "the server's processor time")
    print_table(times, 0, "the clock's time")
    print("\n| grammar alone | a mask, µs | compiled in, ms |\n|---|---:|---:|")
    for name, (mask_us, compile_ms) in alone.items():
        print(f"| {name} | {mask_us:.1f} | {compile_ms:.2f} |")
    if options.json:
        options.json.write_text(json.dumps({
            "processor": processor(), "threads": options.threads, "stolen": stolen.share, "num_tokens": NUM_TOKENS,
            "clock_and_processor_ms_per_token": times,
            "mask_us": {name: of_case[0] for name, of_case in alone.items()},
            "compile_ms": {name: of_case[1] for name, of_case in alone.items()}}, indent=1) + "\n")


if __name__ == "__main__":
    main()
