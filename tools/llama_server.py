#!/usr/bin/env python3
"""Serves a GGUF file by llama.cpp (the package xllamacpp) until standard input ends, for comparisons.

    VENV/bin/python tools/llama_server.py FILE [SLOTS] [THREADS] [CONTEXT] [FIELD=NUMBER...] [embeddings]

With CONTEXT so many tokens, of all slots together, and steps of up to 2,048: a decision model reads a question's options in one,
and an encoder, which has `embeddings`, a text. FIELD is one of xllamacpp's CommonParams, set last.
Prints one line of JSON once it answers: {"url", "load_s", "resident_mib"}: the seconds until the model was loaded, and
what memory the process has taken since then. A line on standard input is answered by another such line.
"""
import json
import sys
import time

from processes import resident_mib


def main():
    import xllamacpp

    embeds = sys.argv[-1] == "embeddings"
    arguments = sys.argv[2:len(sys.argv) - embeds]
    given = [int(argument) for argument in arguments if "=" not in argument]
    slots, threads, context = (given + [1, 2, 0][len(given):])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_parallel = slots
    parameters.n_ctx = context or 4096 * max(1, slots // 4)
    if context:
        parameters.n_batch = parameters.n_ubatch = min(context, 2048)
    parameters.kv_unified = True
    parameters.embedding = embeds
    parameters.port = 0
    parameters.verbosity = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    for field, number in (argument.split("=") for argument in arguments if "=" in argument):
        setattr(parameters, field, int(number))
    before = resident_mib()
    begin = time.monotonic()
    server = xllamacpp.Server(parameters)
    found = {"url": server.listening_address, "load_s": time.monotonic() - begin}
    print(json.dumps(found | {"resident_mib": resident_mib() - before}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(found | {"resident_mib": resident_mib() - before}), flush=True)


if __name__ == "__main__":
    main()
