#!/usr/bin/env python3
"""Measures how long a server takes from its start to its first answered request (page cache warm).

    python3 tools/measure_startup.py SKEIN MODEL_DIR [--runs 5] [--json FILE]

The request asks for one token; it is sent again until the server has loaded the model.
"""
import argparse
import json
import re
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request


def first_answer_s(skein, model):
    start = time.monotonic()
    server = subprocess.Popen([skein, "serve", model, "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        url = re.search(r"loading .* on (\S+)", server.stdout.readline()).group(1)
        body = json.dumps({"prompt": "Hello", "max_tokens": 1}).encode()
        while True:
            request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    json.load(response)
                    return time.monotonic() - start
            except urllib.error.HTTPError as error:
                if error.code != 503 or time.monotonic() - start > 120:
                    raise
                time.sleep(0.005)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("skein")
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    first_answer_s(args.skein, args.model)  # warms the page cache
    seconds = [first_answer_s(args.skein, args.model) for _ in range(args.runs)]
    result = {"startup_s": seconds, "median_startup_s": statistics.median(seconds)}
    print(f"start to first answer: median {result['median_startup_s']:.2f} s of {args.runs} "
          f"({min(seconds):.2f} to {max(seconds):.2f})")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
