#!/usr/bin/env python3
"""Mixed load on a server: streams, whole answers, clients that leave, bad requests, all at once.

    SKEIN_BIN=build/tsan/bin/skein python tests/mixed_load.py --seconds 60

Checks while it runs that each greedy request gets the text that an idle server gave, and at the end
that nothing is left running, every KV block is free and the server exits with status 0.
"""
import argparse
import asyncio
import json
import random
import sys
import time

import httpx

from skein_server import STORIES, SkeinServer

PROMPTS = ["Once upon a time", "The little dog", "Tom and his mom went to the park. " * 6, "A", "She said"]


def body(rng, index):
    return {"model": "stories260K", "prompt": PROMPTS[index], "max_tokens": rng.choice([1, 1, 7, 60]),
            "temperature": 0}


class Load:
    def __init__(self, url, seed, deadline):
        self.url, self.deadline, self.rng = url, deadline, random.Random(seed)
        self.expected, self.counts, self.errors = {}, {}, []

    async def reference(self, client):
        for prompt in range(len(PROMPTS)):
            for max_tokens in (1, 7, 60):
                request = {"model": "stories260K", "prompt": PROMPTS[prompt], "max_tokens": max_tokens,
                           "temperature": 0}
                answer = (await client.post("/v1/completions", json=request)).json()
                self.expected[PROMPTS[prompt], max_tokens] = answer["choices"][0]["text"]

    def check(self, request, text):
        if text != self.expected[request["prompt"], request["max_tokens"]]:
            self.errors.append(f"{request} gave {text!r}")

    async def whole(self, client, rng):
        request = body(rng, rng.randrange(len(PROMPTS)))
        answer = await client.post("/v1/completions", json=request)
        if answer.status_code == 200:
            self.check(request, answer.json()["choices"][0]["text"])
        elif answer.status_code != 429:
            self.errors.append(f"status {answer.status_code}: {answer.text}")

    async def stream(self, client, rng):
        request = body(rng, rng.randrange(len(PROMPTS))) | {"stream": True}
        leave_after = rng.choice([None, 1, 3])
        text, done = "", False
        async with client.stream("POST", "/v1/completions", json=request) as response:
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    done = True
                elif line.startswith("data: "):
                    choices = json.loads(line[6:])["choices"]
                    text += choices[0]["text"] if choices else ""
                    if leave_after is not None:
                        leave_after -= 1
                        if leave_after == 0:
                            return
        if done:
            self.check(request, text)
        else:
            self.errors.append(f"{request}: the stream ended without [DONE]")

    async def sampled(self, client, rng):
        request = body(rng, 0) | {"temperature": 1, "seed": 5, "n": 2, "logprobs": 2}
        answer = await client.post("/v1/completions", json=request)
        if answer.status_code == 200:
            text = [c["text"] for c in answer.json()["choices"]]
            if self.expected.setdefault(("sampled", request["max_tokens"]), text) != text:
                self.errors.append(f"{request} gave {text!r}")

    async def bad(self, client, rng):
        request = body(rng, 0) | {"temperature": -1}
        answer = await client.post("/v1/completions", json=request)
        if answer.status_code != 400 or answer.json()["error"]["param"] != "temperature":
            self.errors.append(f"bad request: {answer.status_code} {answer.text}")

    async def worker(self, client, number):
        rng = random.Random(self.rng.random() + number)
        kinds = [self.whole, self.whole, self.stream, self.stream, self.sampled, self.bad]
        while time.monotonic() < self.deadline and not self.errors:
            kind = rng.choice(kinds)
            await kind(client, rng)
            self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1

    async def run(self, clients):
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(base_url=self.url, timeout=120, limits=limits) as client:
            await self.reference(client)
            await asyncio.gather(*(self.worker(client, i) for i in range(clients)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    # Few blocks: recomputation and eviction take part.
    with SkeinServer(STORIES, "--kv-cache-memory", "2MiB", "--max-num-seqs", 8) as server:
        load = Load(server.url, args.seed, time.monotonic() + args.seconds)
        asyncio.run(load.run(args.clients))
        time.sleep(0.5)
        running = server.metric("vllm:num_requests_running")
        usage = server.metric("vllm:kv_cache_usage_perc")
        status = server.stop()
    print(f"seed {args.seed}: {load.counts}, running {running}, KV usage {usage}, exit {status}")
    print("\n".join(load.errors[:5]))
    if load.errors or running or usage or status:
        print("".join(server.log[-30:]))
        sys.exit(1)


if __name__ == "__main__":
    main()
