"""`skein serve --memory`: what a server takes beside the weights, measured from outside."""
import json
import pathlib
import random
import re
import subprocess
import urllib.request

import pytest
from skein_server import SKEIN_BIN, SkeinServer

TOKENS = 16384
REQUEST_KIB = 1024  # of a body of so many tokens, as text and parsed: beside the memory that is planned
# What is not of the prompt's length is small: one thread, few sequences.
COMMON = ["--threads", 1, "--max-num-seqs", 4]


def read(server, tokens, seed):
    """Has the server answer a prompt of so many random tokens."""
    numbers = random.Random(seed)
    body = {"model": "long", "prompt": [numbers.randrange(10, 4000) for _ in range(tokens)], "max_tokens": 1}
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert json.loads(answer.read())["usage"]["prompt_tokens"] == tokens


@pytest.fixture(scope="module")
def weights_kib(long_context):
    """The peak of a server that takes next to nothing beside the weights, the program and its threads."""
    with SkeinServer(long_context, *COMMON, "--kv-cache-memory", "64KiB", "--max-model-len", 64, "--max-num-batched-tokens", 32) as server:
        read(server, 16, 0)
        return server.peak_kib()


# Whole prompts in one step either way: hybrid with a profile at the start and a prefix cache that the prompts fill, and plain
# with all of a prompt's keys and values. Half of the memory at least is taken, and three prompts fill a cache of all of it: without
# the activations in the plan that would be more than there is.
@pytest.mark.parametrize("options,mib", [(["--scheduling", "prefill-only", "--max-num-batched-tokens", 64], 48),
                                         (["--scheduling", "paged-fcfs", "--max-num-batched-tokens", TOKENS], 60)])
def test_a_server_stays_within_its_memory(long_context, weights_kib, options, mib):
    with SkeinServer(long_context, *COMMON, "--memory", f"{mib}MiB", "--max-model-len", TOKENS, *options) as server:
        for seed in range(3):
            read(server, TOKENS - 1, seed)
        growth_kib = server.peak_kib() - weights_kib
    assert 0.5 * mib * 1024 < growth_kib <= mib * 1024 + REQUEST_KIB


def test_a_server_loads_no_library_that_it_does_not_use(long_context):
    """oneDNN is the yardstick of `skein bench kernels`."""
    with SkeinServer(long_context, *COMMON, "--kv-cache-memory", "1MiB", "--max-model-len", 64) as server:
        read(server, 16, 0)
        loaded = re.findall(r"/lib([a-z0-9_]+)[^/]*\.so", pathlib.Path(f"/proc/{server.process.pid}/maps").read_text())
    assert "ssl" in loaded and not {"dnnl", "gomp"} & set(loaded)


def test_a_longest_prompt_that_does_not_fit_is_refused(long_context):
    command = [SKEIN_BIN, "serve", long_context, "--port", 0, *COMMON, "--memory", "8MiB", "--scheduling", "prelude", "--max-model-len", 60000]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    said = run.stdout + run.stderr
    assert re.search(r"max_model_len.* is 60000; in 8388608 bytes beside the weights at most \d+ tokens fit", said), said
