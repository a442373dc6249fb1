#!/usr/bin/env python3
"""Mixed load on a server: streams, whole answers, decisions, reranks, clients that leave, bad requests, all at once.

    SKEIN_BIN=build/tsan/bin/skein python tests/mixed_load.py --seconds 60 [--scheduling prelude,feather | --scheduling all]

Checks while it runs that each request gets the text and the probabilities that an idle server gave, and at the end that
every kind of request took part, nothing is left running, every KV block is free and the server exits
with status 0. The seed fixes what is asked, not how the requests interleave.
"""
import argparse
import asyncio
import json
import random
import re
import sys
import time

import httpx

from skein_server import ROOT, STORIES, SkeinServer

PROMPTS = ["Once upon a time", "The little dog", "Tom and his mom went to the park. " * 6, "A",
           "She said"]
MAX_TOKENS = (1, 7, 60)
SAMPLED = {"temperature": 1, "seed": 5, "n": 2, "logprobs": 2}
QUESTIONS = [{"type": "predicate", "instructions": "Is somebody sad?"},
             {"type": "choice", "instructions": "Who is in it?", "choices": [{"value": "dog"}, {"value": "Tom"}]}]
READS = [("/v1/decisions", {"input": prompt, "questions": QUESTIONS}) for prompt in PROMPTS[:3]] + \
        [("/v1/rerank", {"query": "dog", "documents": PROMPTS})]
IDLE_TIMEOUT_S = 60  # generous: under a sanitizer the last step alone may take seconds


def greedy(prompt, max_tokens):
    return {"model": "stories260K", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}


def any_greedy(rng):
    return greedy(rng.choice(PROMPTS), rng.choice((1, *MAX_TOKENS)))


def any_sampled(rng):
    return greedy(PROMPTS[0], rng.choice((1, *MAX_TOKENS))) | SAMPLED


def key(request):
    return json.dumps({k: v for k, v in request.items() if k != "stream"}, sort_keys=True)


def texts(answer):
    return [choice["text"] for choice in answer["choices"]]


def read_values(answer):
    """What a decision or a rerank says: all but the numbers of the request itself."""
    return answer.get("answers") or answer["results"]


class Load:
    """`expected`: key(request) -> the texts an idle server gave. `errors`: what went wrong."""

    def __init__(self, url, seed, seconds):
        self.url, self.seconds, self.rng = url, seconds, random.Random(seed)
        self.expected, self.errors = {}, []
        self.kinds = [self.whole, self.whole, self.stream, self.stream, self.sampled, self.read, self.read, self.bad]
        self.counts = {kind.__name__: 0 for kind in self.kinds}

    async def reference(self, client):
        requests = [greedy(prompt, n) for prompt in PROMPTS for n in MAX_TOKENS]
        for request in requests + [greedy(PROMPTS[0], n) | SAMPLED for n in MAX_TOKENS]:
            answer = await client.post("/v1/completions", json=request)
            answer.raise_for_status()
            self.expected[key(request)] = texts(answer.json())
        for path, body in READS:
            answer = await client.post(path, json=body)
            answer.raise_for_status()
            self.expected[key(body)] = read_values(answer.json())

    def check(self, request, found):
        if found != self.expected[key(request)]:
            self.errors.append(f"{request} gave {found!r}, alone {self.expected[key(request)]!r}")

    async def ask(self, client, request, path="/v1/completions", values=texts):
        answer = await client.post(path, json=request)
        if answer.status_code == 200:
            self.check(request, values(answer.json()))
        elif answer.status_code != 429:
            self.errors.append(f"{request}: status {answer.status_code}: {answer.text}")

    async def whole(self, client, rng):
        await self.ask(client, any_greedy(rng))

    async def sampled(self, client, rng):
        await self.ask(client, any_sampled(rng))

    async def read(self, client, rng):
        path, body = rng.choice(READS)
        await self.ask(client, body, path, read_values)

    async def stream(self, client, rng):
        request = any_greedy(rng) | {"stream": True}
        leave_after = rng.choice([None, None, 1, 3])
        text, events = "", 0
        async with client.stream("POST", "/v1/completions", json=request) as response:
            if response.status_code == 429:
                return
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    self.check(request, [text])
                    return
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    if "choices" not in event:
                        break
                    text += "".join(texts(event))
                    events += 1
                    if events == leave_after:
                        return
        self.errors.append(f"{request}: the stream ended without [DONE], after {line!r}")

    async def bad(self, client, rng):
        request = any_greedy(rng) | {"temperature": -1}
        answer = await client.post("/v1/completions", json=request)
        if answer.status_code != 400 or answer.json()["error"]["param"] != "temperature":
            self.errors.append(f"bad request: {answer.status_code} {answer.text}")

    async def worker(self, client, rng, deadline):
        while time.monotonic() < deadline and not self.errors:
            kind = rng.choice(self.kinds)
            try:
                await kind(client, rng)
            except httpx.HTTPError as error:
                self.errors.append(f"{kind.__name__}: {error!r}")
            self.counts[kind.__name__] += 1

    async def run(self, clients, spoil=None):
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(base_url=self.url, timeout=300, limits=limits) as client:
            await self.reference(client)
            if spoil is not None:
                spoil(self.expected)
            deadline = time.monotonic() + self.seconds
            seeds = [self.rng.random() for _ in range(clients)]
            await asyncio.gather(*(self.worker(client, random.Random(s), deadline) for s in seeds))


def wait_until_idle(server):
    """What is still held when the time is up: (running requests, share of the KV blocks)."""
    deadline = time.monotonic() + IDLE_TIMEOUT_S
    while True:
        held = (server.metric("vllm:num_requests_running"),
                server.metric("vllm:kv_cache_usage_perc"))
        if held == (0, 0) or time.monotonic() > deadline:
            return held
        time.sleep(0.05)


def presets():
    """The presets, aliases left out."""
    text = (ROOT / "include/skein/presets.h").read_text()
    return re.findall(r'^    \{"([\w-]+)",(?! *"| *\n *")', text, re.M)


def run_load(seconds, clients, seed, spoil=None, scheduling=None):
    """Loads a server of its own; returns what went wrong. `spoil` may alter the expected texts."""
    print(f"mixed load: seed {seed}, {clients} clients, {seconds:g} s, {scheduling or 'the default preset'}", flush=True)
    # Few blocks: recomputation and eviction take part.
    chosen = ["--scheduling", scheduling] if scheduling else []
    with SkeinServer(STORIES, "--kv-cache-memory", "2MiB", "--max-num-seqs", 8, *chosen) as server:
        load = Load(server.url, seed, seconds)
        asyncio.run(load.run(clients, spoil))
        running, usage = wait_until_idle(server)
        preemptions = server.metric("vllm:num_preemptions_total")
        status = server.stop(timeout_s=IDLE_TIMEOUT_S)
    print(f"{load.counts}, {preemptions:g} preemptions, running {running:g}, KV usage {usage:g}, "
          f"exit {status}")
    errors = load.errors[:5]
    if running or usage:
        errors.append(f"held at the end: {running:g} requests, {usage:g} of the KV blocks")
    if status:
        errors.append(f"exit status {status}")
    if not all(load.counts.values()) and not errors:
        errors.append(f"not every kind of request was made: {load.counts}")
    return errors + server.log[-200:] if errors else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheduling", default="", help="presets, separated by commas, one after the other; all: each")
    args = parser.parse_args()
    chosen = presets() if args.scheduling == "all" else args.scheduling.split(",")
    errors = []
    for preset in chosen:
        found = run_load(args.seconds, args.clients, args.seed, scheduling=preset)
        errors += [f"{preset}: {error}" for error in found]
    print("\n".join(errors) or "clean")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
