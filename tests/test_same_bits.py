"""Every way to run a model gives the same bits: scores over HTTP, compared without a tolerance."""
import concurrent.futures
import itertools
import json
import random
import subprocess
import sys
import urllib.request

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

sys.path.insert(0, str(ROOT / "tools"))
import default_model_data as data  # noqa: E402

MODEL = ROOT / "models/default"
# Models with other bits: the types of their weights, and of their keys and values.
TYPES = {"none": ["--quantization", "none"], "int8": ["--quantization", "int8"], "q8_0": ["--quantization", "q8_0"], "int4": ["--quantization", "int4"],
         "int8 and its cache": ["--quantization", "int8", "--kv-cache-dtype", "int8"]}
KV_FILE = "KV_FILE"  # stands for a file of the test
CHOICES = [
    ["--scheduling", "prefill-only"], ["--scheduling", "prefill-only", "--memory", "64MiB"],
    ["--scheduling", "prefill-only", "--kv-cache-memory", "2MiB"],
    ["--kv-cache-memory", "64MiB", "--kv-cache-file", KV_FILE],
    ["--scheduling", "feather"], ["--scheduling", "request-level"], ["--scheduling", "chunked-fcfs"],
    ["--scheduling", "flow-prefill"], ["--scheduling", "layer-level"],
    ["--execution", "hybrid", "--retention", "none"], ["--order", "srjf", "--batching", "single"],
    ["--kv-storage", "contiguous", "--max-num-seqs", 1], ["--max-num-batched-tokens", 16],
    ["--no-enable-prefix-caching"], ["--plain-attention"], ["--force-decode-path"], ["--threads", 1],
]


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps({"model": "default", **body}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def answers(*args):
    """Scores of 60 questions of the generator's test split, and the greedy answer to a greeting."""
    maker = data.Maker("test", "bits")
    found = []
    with SkeinServer(MODEL, *args) as server:
        for _ in range(20):
            example = maker.example(3)
            prompts = [data.BEFORE + example.head + q.text + data.AFTER for q in example.questions]
            found.append(post(server, "/v1/score", {"query": "", "items": prompts, "apply_softmax": True,
                                                    "label_token_ids": [10, 20, 30]})["scores"])
        chat = post(server, "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 30, "temperature": 0})
    return found, chat["choices"][0]["message"]["content"]


@pytest.fixture(scope="module")
def expected():
    return {name: answers(*types) for name, types in TYPES.items()}


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: " ".join(map(str, choice)))
def test_a_choice_of_how_to_run_changes_no_bit(expected, choice, tmp_path):
    choice = [tmp_path / "kv" if argument == KV_FILE else argument for argument in choice]
    assert answers(*choice) == expected["none"]
    for name, types in TYPES.items():
        if name != "none":
            assert answers(*types, *choice) == expected[name], name


def test_quantized_models_are_other_models(expected):
    """Otherwise the comparison above would show nothing of them."""
    for one, other in itertools.combinations(TYPES, 2):
        assert expected[one][0] != expected[other][0], (one, other)
    assert expected["int8 and its cache"][1] == expected["int8"][1] == expected["none"][1]


ISAS = subprocess.run([SKEIN_BIN, "--isas"], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("quantization", ["int8", "q8_0", "int4"])
def test_integers_with_an_int8_cache_have_the_same_bits_on_every_instruction_set(expected, quantization, monkeypatch):
    types = ["--quantization", quantization, "--kv-cache-dtype", "int8"]
    found = []
    for isa in ISAS:
        monkeypatch.setenv("SKEIN_FORCE_ISA", isa)
        found.append(answers(*types))
    assert all(one == found[0] for one in found), dict(zip(ISAS, found))
    if quantization == "int8":
        assert found[0] == expected["int8 and its cache"]


def decoded(record, num_at_once, *args):
    """Greedy answers, with log-probabilities, to eight prompts of one prefix, so many of them at once; the most that decoded in a step."""
    numbers = random.Random(1)
    shared = [numbers.randrange(100, 4000) for _ in range(320)]  # one step of the AMX walk has 256 keys
    prompts = [shared + [numbers.randrange(100, 4000) for _ in range(1 + i)] for i in range(8)]
    body = {"max_tokens": 200, "temperature": 0, "ignore_eos": True, "logprobs": 2}
    with SkeinServer(MODEL, "--scheduling", "feather", "--record", record, *args) as server:
        with concurrent.futures.ThreadPoolExecutor(num_at_once) as pool:
            found = list(pool.map(lambda prompt: post(server, "/v1/completions", {"prompt": prompt, **body})["choices"][0], prompts))
    events = [json.loads(line) for line in record.read_text().splitlines()]
    most = max(len(event["decodes"]) for event in events if event["event"] == "plan")
    return [(choice["text"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]) for choice in found], most


def test_rows_that_share_a_prefix_decode_to_the_same_bits(tmp_path):
    """Attention that reads their prefix once, for all of them, against attention that reads it for each, and against each alone."""
    alone, most = decoded(tmp_path / "alone", 1, "--plain-attention")
    assert most == 1
    assert all(len(logprobs) == 200 for _, logprobs, _ in alone) and len({text for text, _, _ in alone}) > 1
    for args in ([], ["--plain-attention"], ["--threads", 1], ["--stop-rule", "heuristic"], ["--decode-set", "fill"]):
        together, most = decoded(tmp_path / f"together{''.join(map(str, args))}", 8, *args)
        assert most >= 4, args
        assert together == alone, args


LONG, SHORT = 4, 2  # clients that send long prompts, and short ones that are urgent


def first_tokens(num_at_once, *args):
    """Log-probabilities of the first token after 15 prompts of each client, so many clients at a time; how often a step was
    stopped for more urgent work."""
    numbers = random.Random(2)
    clients = [[[numbers.randrange(100, 4000) for _ in range(1900 if c < LONG else 40)] for _ in range(15)]
               for c in range(LONG + SHORT)]
    with SkeinServer(MODEL, "--max-num-batched-tokens", 2048, *args) as server:
        def ask(c):
            urgent = {} if c < LONG else {"slo_ttft_ms": 1000}  # the others have the default, 10 s
            body = {"max_tokens": 1, "temperature": 0, "logprobs": 5, **urgent}
            answers = [post(server, "/v1/completions", {"prompt": prompt, **body}) for prompt in clients[c]]
            return [answer["choices"][0]["logprobs"]["top_logprobs"] for answer in answers]

        with concurrent.futures.ThreadPoolExecutor(num_at_once) as pool:
            found = list(pool.map(ask, range(LONG + SHORT)))
        stops = sum(count for name, count in server.metrics().items()
                    if name.startswith("skein_scheduler_commands_total") and 'command="preempt"' in name)
    return found, stops


def test_prompts_that_were_stopped_give_the_same_bits():
    alone, stops = first_tokens(1)
    assert stops == 0 and len({str(first) for client in alone for first in client}) > 60  # of 90
    for preset in ("flow-prefill", "layer-level"):
        for _ in range(5):  # the clock decides whether an urgent prompt meets a running step
            together, stops = first_tokens(LONG + SHORT, "--scheduling", preset)
            assert together == alone, preset
            if stops > 0:
                break
        assert stops > 0, preset
