"""The served targets of scripts/gpu_check: `skein serve` on a GPU and loads over loopback HTTP. Prompts are random token ids, each a
new one. Every function fills a dictionary while it goes, so that a limit of time keeps what was measured. Standard library alone."""
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from serving import Server

P99_MOST_MS = 500.0  # of a request for scores
LABELS = [11, 17]    # token ids whose probabilities are a score


class GpuServer(Server):
    START_S = 60

    def __init__(self, skein, model, *options):
        super().__init__(model, free_port(), *options)
        self.command[0] = str(skein)
        self.process = None

    def __enter__(self):
        try:
            return super().__enter__()
        except BaseException:  # a limit of time, above all
            self.end(0)
            raise

    def __exit__(self, *_):
        self.end(10)

    def end(self, wait_s):
        """Ends the server, by force if it has not ended within these seconds."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def vocabulary(model):
    return json.loads((pathlib.Path(model) / "config.json").read_text())["vocab_size"]


class Load:
    """`skein bench serve` with prompts that no earlier load of this object had."""

    def __init__(self, skein, server, model):
        self.skein, self.url, self.vocab, self.loads = skein, server.url, vocabulary(model), 0

    def run(self, clients, count, prompt, output, warmups=0, limit_s=60):
        """The figures of a closed loop of `clients` with `count` requests behind the warm-ups."""
        self.loads += 1
        with tempfile.TemporaryDirectory() as folder:
            workload, out = pathlib.Path(folder) / "load.jsonl", pathlib.Path(folder) / "out.json"
            workload.write_text("".join(json.dumps({"id": str(i), "max_tokens": output, "segments": [[f"{self.loads}/{i}", prompt]]}) + "\n"
                                        for i in range(count + warmups)))
            run = subprocess.run([str(word) for word in (
                self.skein, "bench", "serve", "--url", self.url, "--workload", workload, "--concurrency", clients, "--num-warmups", warmups,
                "--vocab", self.vocab, "--ignore-eos", "--temperature", 0, "--timeout", limit_s, "--time-limit", limit_s, "--json", out)],
                capture_output=True, text=True, timeout=limit_s + 30)
            if run.returncode != 0:
                raise RuntimeError((run.stderr.strip() or run.stdout.strip() or "skein bench serve failed").splitlines()[-1])
            figures = json.loads(out.read_text())
        kept = {"clients": clients, "prompt_tokens": prompt, "output_tokens": output}
        names = ["completed", "failed", "request_throughput"] + [f"{p}_ttft_ms" for p in ("mean", "median", "p99")]
        if output > 1:
            names += [f"{p}_tpot_ms" for p in ("mean", "median", "p99")]
        return kept | {name: figures[name] for name in names if name in figures}


PROMPTS = ["Once upon a time, there was a", "Tom and Lily went to the park. They saw a big dog and", "The sun",
           "Once upon a time, there was a little girl named Lily. She loved to play outside in the park with her friends. " * 3]


def answers(skein, model, options, tokens, repeats):
    """(each answer to PROMPTS, greedy and drawn, with log-probabilities; whether those of a whole load are those of one by one; scores)"""
    with GpuServer(skein, model, *options) as server:
        def ask(index, prompt, temperature, into):
            answer = post(connection(server.url), "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "logprobs": 3, "seed": 5,
                                                                      "temperature": temperature, "ignore_eos": True})
            into[index, temperature] = json.dumps(answer["choices"][0], sort_keys=True)

        asked = [(index, prompt, temperature) for index, prompt in enumerate(PROMPTS * repeats) for temperature in (0, 1.0)]
        alone, together = {}, {}
        for one in asked:
            ask(*one, alone)
        threads = [threading.Thread(target=ask, args=(*one, together), daemon=True) for one in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        scores = post(connection(server.url), "/v1/score", {"query": "", "items": PROMPTS, "apply_softmax": True, "label_token_ids": LABELS})["scores"]
    return alone, alone == together, scores


def schedules(found, skein, model, device_options, choices, tokens, repeats):
    """Whether a server's answers have the same bits under each of `choices`, options of the scheduler, alone and in a load."""
    found |= {"tokens": tokens, "schedules": []}
    first = None
    for options in choices:
        alone, same_together, scores = answers(skein, model, [*device_options, *options], tokens, repeats)
        first = first or (alone, scores)
        found["schedules"].append({"options": " ".join(map(str, options)), "answers": len(alone), "alone_and_together": same_together,
                                   "equal_to_first": (alone, scores) == first})


def decisions(found, skein, data, models, device_options, options, count):
    """Whether decision models answer on a device as on the processor with AVX2, in f32 or emulated: the same numbers, and how many are right."""
    found |= {"count": count, "options": " ".join(options), "models": []}
    asked = [json.loads(line) for line in (data / "trained/held-out.jsonl").read_text().splitlines()][:count]
    os.environ["SKEIN_FORCE_ISA"] = "avx2"  # of the processor that answers, and that reads the heads
    try:
        for model in models:
            on_device, on_cpu = (decided(skein, data / model, [*devices, *options], asked) for devices in (device_options, ["--device", "cpu"]))
            right = [answer[name]["choice"] == expected if isinstance(expected, str) else round(answer[name]["score"]) == expected
                     for one, answer in zip(asked, on_device) for name, expected in one["expected"].items() if not isinstance(expected, bool)]
            found["models"].append({"model": model, "answers": len(asked), "different": sum(a != b for a, b in zip(on_device, on_cpu)),
                                    "read": len(right), "right": sum(right)})
    finally:
        del os.environ["SKEIN_FORCE_ISA"]


def decided(skein, model, options, asked):
    """The answers to each request's questions."""
    with GpuServer(skein, model, *options) as server:
        return [post(connection(server.url), "/v1/systemone", {"state": one["state"], "questions": one["questions"]})["answers"] for one in asked]


def latency(found, skein, model, options, sizes):
    """Time to the first token and of each further one, for few clients. `sizes`: (clients, requests, prompt, output)."""
    found["options"] = options
    found["loads"] = []
    with GpuServer(skein, model, *options) as server:
        load = Load(skein, server, model)
        for clients, count, prompt, output in sizes:
            found["loads"].append(load.run(clients, count, prompt, output, warmups=2 * clients + 2))


def throughput(found, skein, model, options, prompt, levels, seconds):
    """Requests per second at several numbers of clients; each level takes about `seconds`, or two requests of each client."""
    found["options"] = options
    found["levels"] = []
    with GpuServer(skein, model, *options) as server:
        load = Load(skein, server, model)
        rate = load.run(1, 3, prompt, 1, warmups=2)["request_throughput"]
        for clients in levels:
            count = max(2 * clients, round(seconds * rate))
            found["levels"].append(load.run(clients, count, prompt, 1, warmups=min(clients, 4)))
            rate = found["levels"][-1]["request_throughput"]


def ready(found, skein, model, options, starts):
    """Seconds from a server's start to /health and to its first answer, with the files in the page cache."""
    found["options"] = options
    found["starts"] = []
    for _ in range(starts):
        begin = time.monotonic()
        with GpuServer(skein, model, *options) as server:
            post(connection(server.url), "/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 1})
            found["starts"].append({"ready_s": server.ready_s, "first_answer_s": time.monotonic() - begin})
    found["median_ready_s"] = statistics.median(start["ready_s"] for start in found["starts"])


def kv_bytes_per_token(model):
    """Of all layers, in a type of two bytes."""
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * 2


def offload(found, skein, model, options, count, tokens):
    """Prompts that the cache, which has room for two of them, has evicted before they come again: without and with a tier on the host that
    has room for all."""
    found |= {"prompts": count, "prompt_tokens": tokens, "servers": []}
    numbers, vocab, per_token = random.Random(11), vocabulary(model), kv_bytes_per_token(model)
    prompts = [numbers.choices(range(3, vocab), k=tokens) for _ in range(count)]
    options = [*options, "--kv-cache-memory", per_token * (2 * tokens + 66)]  # and its answers
    first = None
    for tier in ([], ["--kv-offload-memory", per_token * tokens * (count + 1)]):
        with GpuServer(skein, model, *options, *tier) as server:
            to, times, answers, cached = connection(server.url, 120), [], [], 0
            for prompt in prompts * 2:
                begin = time.monotonic()
                answer = post(to, "/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 3})
                times.append(1e3 * (time.monotonic() - begin))
                answers.append(answer["choices"][0])
                cached += answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        first = first or answers
        found["servers"].append({"options": " ".join(map(str, [*options, *tier])), "first_ms": statistics.median(times[:count]),
                                 "again_ms": statistics.median(times[count:]), "cached_tokens": cached, "equal_to_first": answers == first})


def connection(url, timeout=30):
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)


def post(to, path, body):
    """The answer's JSON. `body`: a dictionary, or text."""
    to.request("POST", path, body if isinstance(body, str) else json.dumps(body), {"content-type": "application/json"})
    answer = to.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {text[:200].decode(errors='replace')}")
    return json.loads(text)


def scoring(found, skein, model, options, sizes, levels, seconds):
    """Items per second of /v1/score, at several numbers of clients. `sizes`: tokens of a query and of an item, items of a request. A
    request has a query of its own (`own`), or the query of all (`common`), whose prefix then is in the cache."""
    query_tokens, item_tokens, items = sizes
    found |= {"options": options, "query_tokens": query_tokens, "item_tokens": item_tokens, "items": items, "levels": []}
    numbers, vocab = random.Random(7), vocabulary(model)

    def ids(count):
        return numbers.choices(range(3, vocab), k=count)

    common = ids(query_tokens)
    with GpuServer(skein, model, *options) as server:
        def level(queries, clients, count):
            bodies = [json.dumps({"query": common if queries == "common" else ids(query_tokens), "items": [ids(item_tokens) for _ in range(items)],
                                  "label_token_ids": LABELS, "apply_softmax": True}) for _ in range(count)]
            return score_load(server.url, bodies, clients, seconds)

        for queries in ("own", "common"):
            level(queries, 1, 2)  # warm-up
            rate = level(queries, 1, 4)["items_per_s"]
            for clients in levels:
                count = max(2 * clients, round(1.5 * seconds * rate / items))
                found["levels"].append({"queries": queries, "clients": clients} | level(queries, clients, count))
                rate = found["levels"][-1]["items_per_s"]
    for queries in ("own", "common"):
        kept = [one["items_per_s"] for one in found["levels"] if one["queries"] == queries and one["p99_ms"] < P99_MOST_MS and not one["failed"]]
        found[f"{queries}_items_per_s"] = max(kept, default=0.0)


def score_load(url, bodies, clients, seconds):
    """Each client sends the next body, until the time is over or all are sent: no body is sent twice."""
    times, errors, tokens, waiting, lock = [], [], [], iter(bodies), threading.Lock()
    end = time.monotonic() + seconds

    def client():
        to = connection(url)
        while time.monotonic() < end:
            with lock:
                body = next(waiting, None)
            if body is None:
                return
            begin = time.monotonic()
            try:
                answer = post(to, "/v1/score", body)
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                errors.append(str(error))
                to = connection(url)
                continue
            usage = answer["usage"]
            with lock:
                times.append(1e3 * (time.monotonic() - begin))
                tokens.append((len(answer["scores"]), usage.get("prompt_tokens", 0)))

    begin = time.monotonic()
    threads = [threading.Thread(target=client, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
    lasted = time.monotonic() - begin
    if not times:
        raise RuntimeError(errors[0] if errors else "no request for scores was answered")
    times.sort()
    return {"requests": len(times), "failed": len(errors), "items_per_s": sum(count for count, _ in tokens) / lasted,
            "prompt_tokens": sum(count for _, count in tokens), "p50_ms": times[len(times) // 2],
            "p99_ms": times[min(len(times) - 1, int(0.99 * len(times)))]}
