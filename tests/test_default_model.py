"""The default model, served: held-out decisions of every kind, ranks, and the request that scripts/serve prints.

The texts and their answers come from the generator on which the model was measured, its test split.
"""
import collections
import json
import math
import re
import subprocess
import sys
import urllib.request

import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

sys.path.insert(0, str(ROOT / "tools"))
import default_model_data as data  # noqa: E402

MODEL = ROOT / "models/default"
CARD = json.loads((MODEL / "measured.json").read_text())


@pytest.fixture(scope="module")
def server():
    with SkeinServer(MODEL) as running:
        yield running


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def wire_question(question):
    """A generator's question as /v1/decisions takes it; None for what that route has no form for."""
    described = [{"description": d} if d else {} for _, d in question.options]
    names = [name for name, _ in question.options]
    wire = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "predicate":
        return None if any(described) else wire
    if question.kind == "choice":
        return wire | {"choices": [{"value": n, **d} for n, d in zip(names, described)]}
    return wire | {"levels": [{"label": n, **d} for n, d in zip(names, described)]} if all(names) else None


def probabilities(answer):
    """Of the options, in the order of the question."""
    if answer["type"] == "predicate":
        return [answer["probability"], 1 - answer["probability"]]
    return [option["probability"] for option in answer["probabilities"]]


def held_out(count):
    """[(example, [(question, its wire form)])] of the test split, with `count` questions in all."""
    maker, examples, total = data.Maker("test", "served"), [], 0
    while total < count:
        example = maker.example(4)
        asked = [(q, wire_question(q)) for q in example.questions if q.kind != "relevance"]
        asked = [(q, wire) for q, wire in asked if wire]
        if asked and not example.instructions:
            examples.append((example, asked))
            total += len(asked)
    return examples


def test_held_out_decisions_are_as_good_as_the_card_says(server):
    right, seen = collections.Counter(), collections.Counter()
    for example, asked in held_out(800):
        answer = post(server, "/v1/decisions", {"model": "default", "input": example.subject,
                                                "questions": [wire for _, wire in asked]})
        for (question, _), found in zip(asked, answer["answers"]):
            p = probabilities(found)
            seen[question.task] += 1
            right[question.task] += p.index(max(p)) == question.answer
    assert sum(seen.values()) >= 800 and len(seen) >= 10
    for task, count in seen.items():
        accuracy = CARD["tasks"][task]["accuracy"]
        margin = 4 * math.sqrt(max(accuracy * (1 - accuracy), 0.01) / count)  # four standard errors
        assert right[task] / count >= accuracy - margin, task


def tokens_of(server, text):
    return post(server, "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]


def test_decisions_read_the_prompts_that_the_model_was_trained_on(server):
    """The generator's prompt as plain text and the server's own have one distribution over the labels."""
    examples = held_out(40)
    for example, asked in examples:
        answer = post(server, "/v1/decisions", {
            "model": "default", "input": example.subject, "temperature": 1.0,
            "questions": [wire for _, wire in asked]})
        for (question, _), found in zip(asked, answer["answers"]):
            prompt = data.BEFORE + example.head + question.text + data.AFTER
            # yes and no count in all spellings that are one token.
            predicate = list(question.labels) == ["yes", "no"]
            spellings = [[space + word for space in ("", " ") for word in (label, label.capitalize())] if predicate else [label]
                         for label in question.labels]
            ids = [[tokens[0] for text in texts if len(tokens := tokens_of(server, text)) == 1] for texts in spellings]
            read = post(server, "/v1/score", {"model": "default", "query": prompt, "items": [""],
                                              "label_token_ids": sum(ids, []), "apply_softmax": True})
            left = iter(read["scores"][0])
            shares = [sum(next(left) for _ in of_label) for of_label in ids]
            assert shares == pytest.approx(probabilities(found), abs=1e-12)


def test_relevant_documents_rank_above_others(server):
    maker, pairs = data.Maker("test", "ranks"), []
    for _ in range(40):
        example = maker.relevance(8)
        documents = [q.instructions for q in example.questions]
        answer = post(server, "/rerank", {"model": "default", "query": example.subject,
                                          "documents": documents, "instruction": example.instructions})
        score = {r["index"]: r["relevance_score"] for r in answer["results"]}
        kinds = {kind: [i for i, q in enumerate(example.questions) if (q.answer == 0) == kind]
                 for kind in (True, False)}
        pairs += [score[i] > score[j] for i in kinds[True] for j in kinds[False]]
    assert len(pairs) > 300
    assert sum(pairs) / len(pairs) >= CARD["pairs"] - 0.1


def test_chat_answers_in_words(server):
    answer = post(server, "/v1/chat/completions", {
        "model": "default", "max_tokens": 40, "messages": [{"role": "user", "content": "Hello"}]})
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert re.search("[a-z]{3}", answer["choices"][0]["message"]["content"])


def printed_by_serve(*args):
    """What scripts/serve prints; `true` in the server's place."""
    return subprocess.run([ROOT / "scripts/serve", "/usr/bin/true", *args], cwd=ROOT, capture_output=True,
                          check=True, text=True, timeout=20).stdout


def test_serve_without_a_model_prints_that_request():
    """In the shape `make serve` calls it."""
    shown = printed_by_serve("", "--port", "8000")
    readme = (ROOT / "README.md").read_text()
    request = re.search(r"'\{.*\}'", shown, re.DOTALL).group(0)
    assert re.sub(r"\s+", " ", request) in re.sub(r"\s+", " ", readme)


@pytest.mark.parametrize("args", [["--port", "9000"], ["--port=9000", "--served-model-name", "x"]])
def test_serve_prints_a_request_for_any_model_and_port(args):
    """It names no model: what the server calls its only one depends on where it came from."""
    shown = printed_by_serve("org/name", *args)
    assert "http://127.0.0.1:9000/v1/decisions" in shown
    request = re.search(r"'(\{.*\})'", shown, re.DOTALL).group(1)
    assert "model" not in json.loads(request)


def test_the_model_is_small_and_loads_as_any_other():
    assert sum(f.stat().st_size for f in MODEL.iterdir()) <= 8 << 20
    info = subprocess.run([SKEIN_BIN, "model", "info", str(MODEL)], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    assert "Qwen3ForCausalLM" in info
