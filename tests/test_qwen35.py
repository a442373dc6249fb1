"""Qwen3.5 over HTTP: linear layers keep a state of each sequence, and no way to run one changes a bit."""
import concurrent.futures
import json
import random
import subprocess

import httpx
import numpy
import pytest

from safetensors_file import read_raw, write_safetensors
from skein_server import SKEIN_BIN, SkeinServer

NAME = "tiny-qwen3.5"
CHOICES = [
    ["--scheduling", "chunked-fcfs", "--max-num-batched-tokens", 24, "--max-num-seqs", 4],
    ["--scheduling", "prefill-only"], ["--scheduling", "prelude"], ["--scheduling", "flow-prefill"],
    ["--scheduling", "feather"], ["--execution", "hybrid", "--retention", "none"],
    ["--kv-cache-memory", "2MiB", "--max-model-len", 1024], ["--memory", "64MiB"],
    ["--kv-storage", "contiguous", "--max-num-seqs", 1], ["--no-enable-prefix-caching"], ["--threads", 1],
    ["--force-decode-path"],
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen35") / NAME
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", NAME, "--seed", "5", folder], check=True, capture_output=True)
    return folder


def post(server, path, body):
    answer = httpx.post(server.url + path, json={"model": NAME, **body}, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def text(maker, length):
    return "".join(maker.choice("abcdefgh ,.") for _ in range(length))


def jobs():
    """Requests of every kind, many of which begin alike: path, body."""
    maker = random.Random(7)
    heads = [text(maker, length) for length in (64, 96, 150, 333)]
    found = []
    for i in range(24):
        prompt = heads[i % 4] + text(maker, maker.randint(1, 60))
        found.append(("/v1/completions", {"prompt": prompt, "max_tokens": maker.choice([1, 5, 40]), "temperature": 0,
                                          "logprobs": 2, "ignore_eos": True}))
    found.append(("/v1/completions", {"prompt": heads[3], "max_tokens": 20, "temperature": 0.8, "seed": 3, "n": 3,
                                      "logprobs": 1, "ignore_eos": True}))
    for head in heads[1:]:
        found.append(("/v1/decisions", {"input": head, "questions": [
            {"type": "predicate", "instructions": text(maker, 30)},
            {"type": "choice", "instructions": text(maker, 50), "choices": [{"value": v} for v in ("red", "green", "blue")]},
            {"type": "score", "instructions": text(maker, 40), "levels": [{"label": v} for v in ("low", "high")]}]}))
        found.append(("/v1/score", {"query": head, "items": [text(maker, n) for n in (3, 20, 45)],
                                    "label_token_ids": [10, 20, 30], "apply_softmax": True}))
    return found


def essence(path, answer):
    """The part of an answer that says what was computed, not when or from where."""
    if path == "/v1/completions":
        return [[c["text"], c["logprobs"]] for c in answer["choices"]]
    return answer.get("answers") or answer["scores"]


def alone(server, repeat=1):
    return [json.dumps(essence(path, post(server, path, body))) for path, body in jobs() for _ in range(repeat)][::repeat]


def together(server, wanted=None):
    wanted = wanted or jobs()
    asked = wanted * 2
    order = list(range(len(asked)))
    random.Random(1).shuffle(order)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: post(server, *asked[i]), order))
    found = {}
    for i, answer in zip(order, answers):
        found.setdefault(i % len(wanted), set()).add(json.dumps(essence(asked[i][0], answer)))
    assert all(len(kinds) == 1 for kinds in found.values())
    return [found[i].pop() for i in range(len(found))]


@pytest.fixture(scope="module")
def expected(model):
    with SkeinServer(model, "--no-enable-prefix-caching", "--max-num-seqs", 8) as server:
        return alone(server)


def test_nothing_changes_under_load_and_from_the_cache(model, expected):
    with SkeinServer(model) as server:
        assert alone(server, repeat=2) == expected
        assert together(server) == expected
        assert alone(server) == expected


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: " ".join(map(str, choice)))
def test_a_choice_of_how_to_run_changes_no_bit(model, expected, choice):
    # Contiguous storage has one sequence at a time: no request has several samples.
    one = "contiguous" in choice
    wanted = [i for i, (_, body) in enumerate(jobs()) if not one or "n" not in body]
    with SkeinServer(model, *choice) as server:
        assert together(server, [jobs()[i] for i in wanted]) == [expected[i] for i in wanted]


def cached(server, prompt):
    usage = post(server, "/v1/completions", {"prompt": prompt, "max_tokens": 2, "ignore_eos": True})["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_prompts_start_from_snapshots(model):
    maker = random.Random(3)
    head = text(maker, 128)
    with SkeinServer(model) as server:
        assert cached(server, head + text(maker, 40)) == 0
        # The first prompt has left a tentative snapshot 64 tokens before its end. The second finds keys and values as far as
        # the two are alike, and leaves a snapshot where they part.
        assert cached(server, head + "x" + text(maker, 40)) == 96
        assert cached(server, head + "y" + text(maker, 40)) == 128
        again = head + "z" + text(maker, 70)
        assert cached(server, again) == 128
        assert cached(server, again) == len(again) // 32 * 32
        assert cached(server, again + " and more") == len(again) // 32 * 32


def ask(server, tokens, length):
    """Greedy tokens behind these, what was computed, and the cached tokens of the prompt."""
    answer = post(server, "/v1/completions", {"prompt": tokens, "max_tokens": length, "temperature": 0, "logprobs": 2,
                                              "ignore_eos": True, "return_token_ids": True})
    choice = answer["choices"][0]
    return choice["token_ids"], [choice["text"], choice["logprobs"]], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("options", [[], ["--scheduling", "chunked-fcfs", "--max-num-batched-tokens", 48], ["--max-num-seqs", 1]],
                         ids=lambda options: " ".join(map(str, options)))
def test_a_turn_starts_behind_the_last_answer(model, options):
    maker = random.Random(11)
    turns = [[maker.randrange(30, 120) for _ in range(length)] for length in (150, 40, 71, 33)]
    with SkeinServer(model, "--no-enable-prefix-caching") as server:
        tokens, expected = [], []
        for turn in turns:
            tokens += turn
            answer, essence, cached_tokens = ask(server, tokens, 75)
            tokens += answer
            expected.append(essence)
            assert cached_tokens == 0
    with SkeinServer(model, *options) as server:
        tokens, found = [], []
        for turn in turns:
            begun = len(tokens)
            tokens += turn
            answer, essence, cached_tokens = ask(server, tokens, 75)
            tokens += answer
            found.append(essence)
            # The last token of an answer is not computed.
            assert cached_tokens == max(0, begun - 1) // 32 * 32
    assert found == expected


def test_a_decision_starts_behind_the_input_of_another_request(model):
    maker = random.Random(13)
    context = text(maker, 700)

    def cached_tokens(server, instructions):
        answer = post(server, "/v1/decisions", {"input": context, "questions": [{"type": "predicate", "instructions": instructions}]})
        return answer["usage"]["input_tokens_details"]["cached_tokens"]

    with SkeinServer(model) as server:
        assert cached_tokens(server, text(maker, 40)) == 0
        assert cached_tokens(server, text(maker, 40)) >= 512
        assert cached_tokens(server, text(maker, 40)) >= 672


ADAPTED = ("q_proj", "v_proj", "o_proj", "in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj", "gate_proj", "down_proj")


def write_adapter(folder, model, seed, modules):
    """A random adapter for these modules of the model, as PEFT lays it out."""
    maker, rank, tensors = numpy.random.default_rng(seed), 4, {}
    for name, (_, shape, _) in read_raw(model / "model.safetensors").items():
        path = name.removesuffix(".weight")
        if path.rsplit(".", 1)[-1] in modules:
            tensors[f"base_model.model.{path}.lora_A.weight"] = maker.normal(0, 0.2, (rank, shape[1]))
            tensors[f"base_model.model.{path}.lora_B.weight"] = maker.normal(0, 0.2, (shape[0], rank))
    folder.mkdir()
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "bias": "none", "target_modules": list(modules)}))
    return folder


def test_adapters_have_the_bits_of_each_alone(model, tmp_path):
    adapters = {"all": write_adapter(tmp_path / "all", model, 1, ADAPTED), "two": write_adapter(tmp_path / "two", model, 2, ADAPTED[3:5])}
    options = [option for name, folder in adapters.items() for option in ("--lora", f"{name}={folder}")]
    maker = random.Random(5)
    heads = [text(maker, 200), text(maker, 77)]
    wanted = [("/v1/completions", {"model": name, "prompt": head + text(maker, 20), "max_tokens": 12, "temperature": 0, "logprobs": 2,
                                   "ignore_eos": True}) for name in (NAME, "all", "two") for head in heads for _ in range(3)]
    with SkeinServer(model, *options, "--no-enable-prefix-caching") as server:
        expected = [json.dumps(essence(path, post(server, path, body))) for path, body in wanted]
    assert len(set(expected)) == len(expected)
    with SkeinServer(model, *options) as server:
        assert together(server, wanted) == expected
        assert together(server, wanted) == expected


def test_info_names_the_state(model):
    shown = json.loads(subprocess.run([SKEIN_BIN, "model", "info", model, "--json", "-"], check=True, capture_output=True,
                                      text=True).stdout)
    # Three linear layers: 4 heads of 32 x 32, and 3 tokens of 256 columns, in f32.
    assert shown["linear_layers"] == 3 and shown["state_bytes"] == 3 * (4 * 32 * 32 + 3 * 256) * 4
    assert shown["kv_bytes_per_token"] == 2 * 2 * 32 * 2
    assert shown["problems"] == []
