#!/usr/bin/env python3
"""Times the HuggingFace `tokenizers` package on the texts of `skein bench tokenizer --dump-texts`.

    python3 tools/tokenizer_reference.py DIR TEXTS.jsonl OUT.json

Every text must get the ids that the file gives, else nothing is timed. OUT.json has the members of Skein's own result;
`us` is the whole call, `empty_us` what the same call costs for nothing (an empty text, no ids). CPU time of the calling
thread, but for batches and concurrent calls, where it is the time that passes; medians after a warm-up.
"""
import json
import pathlib
import statistics
import sys
import threading
import time

import tokenizers

SAMPLES = 15
SAMPLE_NS = 1_000_000  # a sample repeats its call for about so long
BATCH_SIZES = [1, 4, 16, 64]
THREADS, CALLS = 8, 100
LOADS = 3


def median_us(call, clock=time.thread_time_ns, samples=SAMPLES):
    call()
    begin = clock()
    call()
    repeats = max(1, SAMPLE_NS // max(clock() - begin, 1000))
    if repeats == 1:
        samples = min(samples, 7)
    times = []
    for _ in range(samples):
        begin = clock()
        for _ in range(repeats):
            call()
        times.append((clock() - begin) / repeats)
    return statistics.median(times) / 1e3


def concurrent_us(tokenizer, texts):
    def work(first):
        for i in range(CALLS):
            tokenizer.encode(texts[(first * 7 + i) % len(texts)], add_special_tokens=False)

    times = []
    for _ in range(5):
        threads = [threading.Thread(target=work, args=(t,)) for t in range(THREADS)]
        begin = time.perf_counter_ns()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        times.append((time.perf_counter_ns() - begin) / (THREADS * CALLS))
    return statistics.median(times) / 1e3


def stream_us(tokenizer, ids):
    def call():
        stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
        for i in ids:
            stream.step(tokenizer, i)

    return median_us(call) / len(ids)


def main():
    folder, texts_path, out_path = map(pathlib.Path, sys.argv[1:])
    file = str(folder / "tokenizer.json")
    entries = [json.loads(line) for line in texts_path.read_text(encoding="utf-8").split("\n")[:-1]]
    loads, first_sight = [], []
    unseen = next(e["text"] for e in entries if e["name"] == "first-sight")
    for _ in range(LOADS):
        begin = time.thread_time_ns()
        tokenizer = tokenizers.Tokenizer.from_file(file)
        loads.append((time.thread_time_ns() - begin) / 1e6)
        begin = time.thread_time_ns()
        tokenizer.encode(unseen, add_special_tokens=False)
        first_sight.append((time.thread_time_ns() - begin) / 1e3)
    for entry in entries:
        if tokenizer.encode(entry["text"], add_special_tokens=False).ids != entry["ids"]:
            sys.exit(f"tokenizer_reference: {entry['name']}: the ids differ: {entry['text'][:200]!r}")

    rows = [e for e in entries if e["name"] not in ("batch", "first-sight", "one-letter")]
    batch = [e["text"] for e in entries if e["name"] == "batch"]
    one_letter = next(e["text"] for e in entries if e["name"] == "one-letter")
    stream_ids = next(e["ids"] for e in rows if e["name"] == "english-2025-distinct")

    def encode(text):
        return lambda: tokenizer.encode(text, add_special_tokens=False)

    def decode(ids):
        return lambda: tokenizer.decode(ids, skip_special_tokens=False)

    result = {
        "tokenizers": tokenizers.__version__,
        "load_ms": statistics.median(loads),
        "encode_empty_us": median_us(encode("")),
        "decode_empty_us": median_us(decode([])),
        "stream_empty_us": median_us(lambda: tokenizer.id_to_token(2**31)),
        "encode": [{"name": e["name"], "us": median_us(encode(e["text"]))} for e in rows],
        "decode": [{"name": e["name"], "us": median_us(decode(e["ids"]))} for e in rows],
        "batch_empty_us": median_us(lambda: tokenizer.encode_batch([]), time.perf_counter_ns),
        "batch": [{"size": n, "us": median_us(
            lambda n=n: tokenizer.encode_batch(batch[:n], add_special_tokens=False),
            time.perf_counter_ns)} for n in BATCH_SIZES],
        "concurrent": {"threads": THREADS, "us_per_encode": concurrent_us(tokenizer, batch)},
        "stream_decode_us": stream_us(tokenizer, stream_ids),
        "first_sight": {"chars": len(unseen), "us": statistics.median(first_sight)},
        "one_letter": {"chars": len(one_letter), "us": median_us(encode(one_letter), samples=1)},
    }
    out_path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
