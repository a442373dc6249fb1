"""Prelude's sweep between different servers: `skein serve` and llama.cpp's answer the same texts over HTTP, one token each.
scripts/exp_prelude --peers measures it; the page's section is made here."""
import collections
import contextlib
import datetime
import http.client
import json
import math
import os
import random
import re
import statistics
import threading
import time
import urllib.parse

from charts import table, target_of_all, targets_table
from gguf_engines import ROOT, Llama, Skein, smollm2
from serving import StolenTime, processor

HIT_RATES = (0, 50, 90)  # % of a prompt's tokens that earlier requests had
CLIENTS, QUICK_CLIENTS = (1, 4, 16, 64, 128), (1, 16)
COMPUTED_TOKENS = 1200  # of a point with few clients: some 4 s of the slower engine on two cores
SLOTS = 16  # of Skein: its default
LLAMA_SLOTS = (1, 4, 16)  # a short trial chooses
LLAMA_THREADS = f"n_threads_http={max(CLIENTS) + 16}"  # an open connection occupies a thread of its HTTP server
TRIAL_CLIENTS, TRIAL_HIT_RATE = 16, 50
CHECKED = 8  # requests of a point that an idle server answers once more
ISA = "avx2"  # what xllamacpp's wheel is built for
PUBLISHED = {"sweep": (1.02, 1.65), "one client": (2.08, 3.85)}  # Prelude on an H200: over vLLM and over SGLang


class Texts:
    """Prompts of about so many tokens: prose of this project's pages, each passage from another word on."""

    def __init__(self, tokens_of, prompt_tokens):
        files = sorted((ROOT / "docs").glob("*.md"))
        prose = [line for file in files for line in file.read_text().split("\n") if re.match(r"[A-Za-z]", line)]
        self.words = " ".join(prose).split()
        measured = self.words[:2000]
        self.words_per_token = len(measured) / len(tokens_of(" ".join(measured)))
        self.prompt_tokens = prompt_tokens
        self.starts = self.shuffled_starts()

    def shuffled_starts(self):
        numbers = random.Random(1)
        while True:
            yield from numbers.sample(range(len(self.words)), len(self.words))

    def passage(self, tokens):
        start, count = next(self.starts), round(tokens * self.words_per_token)
        return " ".join((self.words + self.words)[start:start + count])

    def prefix(self, hit_rate):
        """A text that is this share of a prompt, in %."""
        return self.passage(self.prompt_tokens * hit_rate / 100) + " " if hit_rate else ""

    def prompts(self, prefix, hit_rate, count):
        """Prompts that begin with this prefix and share nothing else."""
        return [prefix + self.passage(self.prompt_tokens * (1 - hit_rate / 100)) for _ in range(count)]


def requests_of(clients, hit_rate, prompt_tokens):
    """How many requests a point has: one for each client, and more where clients are few."""
    return max(clients, round(COMPUTED_TOKENS / (prompt_tokens * (1 - hit_rate / 100))))


class Client(threading.Thread):
    """Asks for one prompt of the queue after the other over one connection; ends when none is left."""

    def __init__(self, url, queue, begin):
        super().__init__()
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=600)
        self.connection.connect()
        self.queue, self.begin, self.answers, self.failure = queue, begin, {}, None

    def run(self):
        self.begin.wait()
        try:
            while True:
                number, prompt = self.queue.popleft()
                begin = time.perf_counter()
                answer = self.ask(prompt)
                self.answers[number] = answer | {"ms": 1000 * (time.perf_counter() - begin)}
        except IndexError:
            self.connection.close()
        except Exception as failure:  # a thread's: answers_of raises it
            self.failure = failure

    def ask(self, prompt):
        body = {"model": "m", "prompt": prompt, "max_tokens": 1, "temperature": 0}
        self.connection.request("POST", "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {text[:200]}")
        answer = json.loads(text)
        usage = answer["usage"]
        return {"text": answer["choices"][0]["text"], "tokens": usage["prompt_tokens"],
                "cached": usage["prompt_tokens_details"]["cached_tokens"]}


def answers_of(engine, prompts, clients):
    """The answers in the prompts' order, and the seconds until the last: each client asks again at once."""
    queue, begin = collections.deque(enumerate(prompts)), threading.Event()
    threads = [Client(engine.url, queue, begin) for _ in range(clients)]
    for thread in threads:
        thread.start()
    started = time.perf_counter()
    begin.set()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    for thread in threads:
        if thread.failure:
            raise thread.failure
    answers = {number: answer for thread in threads for number, answer in thread.answers.items()}
    return [answers[number] for number in range(len(prompts))], seconds


def figures(answers, seconds):
    times = sorted(answer["ms"] for answer in answers)
    return {"requests_per_s": len(answers) / seconds, "p50_ms": statistics.median(times), "p95_ms": times[math.ceil(0.95 * len(times)) - 1],
            "tokens": statistics.mean(answer["tokens"] for answer in answers),
            "hit_rate": sum(answer["cached"] for answer in answers) / sum(answer["tokens"] for answer in answers)}


def warm_up(engine, prefix, slots):
    """Asks for the prefix, by as many clients at once as the engine has caches of their own."""
    answers_of(engine, [prefix + "So"] * slots, slots)


def llama_trial(python, file, texts):
    """[{slots, kv_unified, requests_per_s}] of llama.cpp, the best first. Each slot keeps its last prompt's KV cache."""
    found = []
    prefix = texts.prefix(TRIAL_HIT_RATE)
    prompts = texts.prompts(prefix, TRIAL_HIT_RATE, TRIAL_CLIENTS)
    for slots, unified in [(slots, unified) for slots in LLAMA_SLOTS for unified in (1, 0) if slots > 1 or unified]:
        with Llama(python, file, slots, [LLAMA_THREADS, f"kv_unified={unified}"]) as engine:
            warm_up(engine, prefix, slots)
            _, seconds = answers_of(engine, prompts, TRIAL_CLIENTS)
        found.append({"slots": slots, "kv_unified": unified, "requests_per_s": len(prompts) / seconds})
        print(found[-1], flush=True)
    return sorted(found, key=lambda one: -one["requests_per_s"])


def turn_of(engines, prompts, clients, order):
    """One turn of a point: {engine: figures, ..., "agree": a share}, and [prompt, Skein's answer] of some requests."""
    answers, turn = {}, {}
    for name in order:
        answers[name], seconds = answers_of(engines[name], prompts, clients)
        turn[name] = figures(answers[name], seconds)
    turn["agree"] = statistics.mean(one["text"] == other["text"] for one, other in zip(*answers.values(), strict=True))
    return turn, [[prompt, answer["text"]] for prompt, answer in list(zip(prompts, answers["skein"]))[:CHECKED]]


def sweep(engines, llama_slots, texts, rounds, clients_of_points):
    """({(hit rate, clients): turns}, [[prompt, Skein's answer]] of some requests of the first turn)"""
    found, checked = collections.defaultdict(list), []
    for turn in range(rounds):
        order = list(engines)[::1 - 2 * (turn % 2)]
        for hit_rate in HIT_RATES:
            prefix = texts.prefix(hit_rate)
            warm_up(engines["skein"], prefix, 1)
            warm_up(engines["llama.cpp"], prefix, llama_slots if hit_rate else 1)
            for clients in clients_of_points:
                prompts = texts.prompts(prefix, hit_rate, requests_of(clients, hit_rate, texts.prompt_tokens))
                figures_of_turn, some = turn_of(engines, prompts, clients, order)
                found[hit_rate, clients].append(figures_of_turn)
                checked += some if turn == 0 else []
                print(turn, hit_rate, clients, json.dumps(figures_of_turn), flush=True)
    return found, checked


def measure(python, rounds, quick, prompt_tokens, command):
    """What prelude-peers.json keeps. Both servers stay up; an idle one uses no processor."""
    file = smollm2()
    with contextlib.ExitStack() as stack, StolenTime() as stolen:
        skein = stack.enter_context(Skein(file, SLOTS, isa=ISA, caching=True))
        texts = Texts(skein.tokens, prompt_tokens)
        trial = llama_trial(python, file, texts)
        slots = trial[0]["slots"]
        llama = stack.enter_context(Llama(python, file, slots, [LLAMA_THREADS, f"kv_unified={trial[0]['kv_unified']}"]))
        found, checked = sweep({"skein": skein, "llama.cpp": llama}, slots, texts, rounds, QUICK_CLIENTS if quick else CLIENTS)
    with Skein(file, 1, isa=ISA) as idle:
        answers, _ = answers_of(idle, [prompt for prompt, _ in checked], 1)
    moved = sum(answer["text"] != text for answer, (_, text) in zip(answers, checked, strict=True))
    return {"command": command, "date": datetime.date.today().isoformat(), "machine": f"{processor()}, {os.cpu_count()} cores",
            "rounds": rounds, "stolen": stolen.share, "trial": trial, "idle": {"checked": len(checked), "moved": moved},
            "points": [{"hit_rate": hit_rate, "clients": clients, "requests": requests_of(clients, hit_rate, prompt_tokens), "turns": turns}
                       for (hit_rate, clients), turns in found.items()]}


def middle(point, engine, key):
    return statistics.median(turn[engine][key] for turn in point["turns"])


def ratio(point, key):
    """By how much Skein is ahead: the median over the turns."""
    ratios = [turn["skein"][key] / turn["llama.cpp"][key] for turn in point["turns"]]
    return statistics.median(ratios) if key == "requests_per_s" else 1 / statistics.median(ratios)


def target_lines(points):
    named = [(f"{point['hit_rate']} %, {point['clients']} client{'s' * (point['clients'] > 1)}", point) for point in points]
    rates = [(name, ratio(point, "requests_per_s")) for name, point in named]
    halves = [(name, ratio(point, "p50_ms")) for name, point in named]
    alone = [(name, ratio(point, "p50_ms")) for name, point in named if point["clients"] == 1]
    (low, high), (vllm, sglang) = PUBLISHED["sweep"], PUBLISHED["one client"]
    return targets_table([
        target_of_all("requests/s: never fewer than llama.cpp's (ratio 1)", rates, 1.0),
        target_of_all(f"p50: Prelude's least ratio of its sweep ({low})", halves, low),
        target_of_all(f"p50: Prelude's largest ratio of its sweep ({high})", halves, high),
        target_of_all(f"p50, one client: Prelude's ratio over vLLM ({vllm})", alone, vllm),
        target_of_all(f"p50, one client: Prelude's ratio over SGLang ({sglang})", alone, sglang)])


def point_lines(points):
    rows = [[f"{point['hit_rate']} %", point["clients"], point["requests"],
             *(f"{middle(point, name, key):.{digits}f}" for name in ("skein", "llama.cpp")
               for key, digits in (("requests_per_s", 2), ("p50_ms", 0), ("p95_ms", 0))),
             f"{ratio(point, 'requests_per_s'):.2f}", f"{ratio(point, 'p50_ms'):.2f}",
             *(f"{100 * middle(point, name, 'hit_rate'):.0f} %" for name in ("skein", "llama.cpp"))] for point in points]
    return table(["hit rate", "clients", "requests", "Skein req/s", "p50 ms", "p95 ms", "llama.cpp req/s", "p50 ms", "p95 ms", "req/s ratio",
                  "p50 ratio", "cached by Skein", "by llama.cpp"], rows)


def page_lines(data):
    """The section of docs/results/prelude.md."""
    points, idle, best = data["points"], data["idle"], data["trial"][0]
    tokens = statistics.mean(middle(point, "skein", "tokens") for point in points)
    agree = sum(turn["agree"] * point["requests"] for point in points for turn in point["turns"])
    asked = sum(point["requests"] * len(point["turns"]) for point in points)
    tried = ", ".join(f"{one['slots']} {'over one KV cache' if one['kv_unified'] else 'with caches of their own'} ({one['requests_per_s']:.2f})"
                      for one in data["trial"])
    (low, high), (vllm, sglang) = PUBLISHED["sweep"], PUBLISHED["one client"]
    return ["## Against another server", "",
            f"Made by `{data['command']}` on {data['date']}. {data['machine']}; {100 * data['stolen']:.1f} % of its time went to other machines.",
            "`skein serve` and llama.cpp's server (xllamacpp) answer the same texts by `/v1/completions`, greedily and with one token each. The",
            "model is SmolLM2-135M-Instruct in Q4_1. Both read one GGUF file, and both compute with AVX2, for which xllamacpp's wheel is built.",
            f"A prompt has {tokens:.0f} tokens of this project's pages. The hit rate is the share of a prompt with which all prompts of a turn begin.",
            "That prefix was asked for before the clock started. Each client asks again at once until no request is left. Engines take turns,",
            f"each turn has texts of its own, and figures are medians of {data['rounds']} turns. Ratios are Skein's requests/s over llama.cpp's, and",
            "llama.cpp's p50 over Skein's. The last columns are the cached shares that the answers report.", "",
            "llama.cpp has its prompt cache, a thread for each connection, and the prefix in every slot. Slots were chosen by a trial of",
            f"{TRIAL_CLIENTS} clients and a hit rate of {TRIAL_HIT_RATE} % (requests/s): {tried}. The best had {best['slots']}; further clients wait in line.",
            f"Skein has its default options, with {SLOTS} continuations at once.", "",
            f"Published, on an H200 and between different servers: {low} to {high} over the sweep, {vllm} (over vLLM) and {sglang} (over SGLang) at one",
            "client.", "",
            *point_lines(points),
            f"The first token of both engines is the same for {100 * agree / asked:.1f} % of {asked} requests. An idle server without a prefix cache",
            f"answered {idle['checked']} requests of the first turn once more: {idle['moved']} of Skein's answers differ.", "",
            *target_lines(points)]
