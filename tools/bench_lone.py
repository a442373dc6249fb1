#!/usr/bin/env python3
"""Times prompts that are alone on a server, over HTTP, against what the machine allows in the same seconds.

    python3 tools/bench_lone.py MODEL [--tokens 128] [--samples 9] [--requests 3]

Starts `skein serve` without a prefix cache, on loopback. Two reads: `token` (/v1/completions, one greedy token: the whole
output matrix for one row) and `labels` (/v1/score, two labels: two rows of it). A sample: the limits (`skein bench limits`), then
some requests of each read, then the limits again. Outside: from sending to the last byte of the answer, less the server's own
skein_step_seconds_total. Floor: the layers' products (of the last one all but keys and values for one token only) computed at the
matrix unit's rate or their weights read, whichever takes longer, then the output matrix read once (`token`); sum: computed and then
read. The last line is JSON: {"tokens", "reads":
{name: {"ms", "outside_ms", "floor_ms", "sum_ms", "over_floor", "over_sum"}}, "limits"}; medians.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import socket
import statistics
import string
import subprocess
import time

from serving import SKEIN, limits

PORT = int(os.environ.get("SKEIN_BENCH_PORT", "8019"))


class Connection:
    """HTTP/1.1 on one kept connection: what a client library would add is not measured."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method, path, body=None):
        """(the answer's status and body, seconds)."""
        text = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        begin = time.perf_counter()
        self.socket.sendall(head.encode() + text)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.receive()
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(rest) < length:
            rest += self.receive()
        return int(head.split()[1]), rest.decode(), time.perf_counter() - begin

    def read(self, path, body):
        """(the answer, seconds)."""
        status, text, seconds = self.ask("POST", path, body)
        if status != 200:
            raise SystemExit(f"{path}: {status}: {text}")
        return json.loads(text), seconds

    def receive(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise SystemExit("the server closed the connection")
        return data

    def step_seconds(self):
        """Of all steps so far."""
        lines = self.ask("GET", "/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("skein_step_seconds_total"))


@contextlib.contextmanager
def server(model):
    command = [SKEIN, "serve", model, "--port", str(PORT), "--served-model-name", "lone", "--no-enable-prefix-caching", "--kv-cache-memory", "1GiB"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                connection = Connection(PORT)
                if connection.ask("GET", "/health")[0] == 200:
                    yield connection
                    return
            if process.poll() is not None:
                raise SystemExit("the server ended")
            time.sleep(0.1)
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait()


class Floor:
    """Of a model's passes over one prompt."""

    def __init__(self, model):
        config = json.loads((pathlib.Path(model) / "config.json").read_text())
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        head = config.get("head_dim") or hidden // config["num_attention_heads"]
        q, kv = head * config["num_attention_heads"], head * config["num_key_value_heads"]
        self.kv, self.rest = hidden * 2 * kv, hidden * 2 * q + 3 * hidden * config["intermediate_size"]  # of a layer
        self.num_layers = layers
        self.layers = layers * (self.kv + self.rest)
        self.output = config["vocab_size"] * hidden

    def seconds(self, tokens, whole_output, limit):
        """(whichever of computing and reading takes longer, both)."""
        products = tokens * (self.num_layers * self.kv + (self.num_layers - 1) * self.rest) + self.rest
        compute = 2 * products / (limit["compute_tflops"] * 1e12)
        read = 2 * self.layers / (limit["read_gbps"] * 1e9)
        output = 2 * self.output / (limit["read_gbps"] * 1e9) if whole_output else 0
        return max(compute, read) + output, compute + read + output


def bodies(tokens, vary):
    """{read: (path, request, the number of prompt tokens in the answer)} of about so many tokens."""
    def text(count):
        return "".join(vary.choice(string.ascii_lowercase) for _ in range(max(count, 1)))

    return {"token": lambda extra: ("/v1/completions", {"model": "lone", "prompt": text(tokens + extra), "max_tokens": 1, "temperature": 0}),
            "labels": lambda extra: ("/v1/score", {"model": "lone", "query": text(tokens + extra - 1), "items": ["a"], "label_token_ids": [70, 71],
                                                   "apply_softmax": True})}


def fit(connection, make, tokens):
    """What to add to a text's length for exactly so many tokens, of a tokenizer that knows letters alone."""
    extra = 0
    for _ in range(8):
        found = connection.read(*make(extra))[0]["usage"]["prompt_tokens"]
        if found == tokens:
            return extra
        extra += tokens - found
    raise SystemExit(f"no text of exactly {tokens} tokens was found")


def measure(args):
    floor, found, seen = Floor(args.model), {}, []
    with server(args.model) as connection:
        reads = bodies(args.tokens, random.Random(1))
        extra = {name: fit(connection, make, args.tokens) for name, make in reads.items()}
        before = limits(3)
        for _ in range(args.samples):
            times = {name: [] for name in reads}
            for _ in range(args.requests):
                for name, make in reads.items():
                    stepped = connection.step_seconds()
                    _, seconds = connection.read(*make(extra[name]))
                    times[name].append((seconds, seconds - (connection.step_seconds() - stepped)))
            after = limits(3)
            limit = {key: (before[key] + after[key]) / 2 for key in ("compute_tflops", "read_gbps")}
            for name, pairs in times.items():
                least, both = floor.seconds(args.tokens, name == "token", limit)
                for seconds, outside in pairs:
                    found.setdefault(name, []).append({"ms": 1e3 * seconds, "outside_ms": 1e3 * outside, "floor_ms": 1e3 * least, "sum_ms": 1e3 * both,
                                                       "over_floor": seconds / least, "over_sum": seconds / both})
            seen.append(limit)
            before = after
    def median(rows):
        return {key: statistics.median(row[key] for row in rows) for key in rows[0]}

    return {"tokens": args.tokens, "reads": {name: median(rows) for name, rows in found.items()}, "limits": median(seen)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--requests", type=int, default=3, help="of each read in a sample")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
