"""Decisions in every reading: the same bits alone and under load, and what a real client sends and gets."""
import concurrent.futures
import random

import httpx
import openai
import pytest

from skein_server import ROOT, SkeinServer

READINGS = ["letters", "letters+permuted", "letters+calibrated", "words", "words+calibrated", "words+permuted",
            "words+calibrated+permuted"]
PROMPTS = ["chat", "question", "cue"]
CHOICE = {"type": "choice", "instructions": "What is the sentiment of the text?",
          "choices": [{"value": "positive"}, {"value": "not positive at all"}, {"value": "not"}]}
QUESTIONS = [CHOICE, {"type": "predicate", "instructions": "Is this message spam?"},
             {"type": "score", "instructions": "How urgent is it?",
              "levels": [{"label": "can wait"}, {"label": "today"}, {"label": "at once"}]}]
EXAMPLES = [{"input": "A fine hotel.", "answers": ["positive", False, 0]},
            {"input": "Win a prize now!", "answers": ["not", True, "today"]}]
TEXTS = ["The hotel was dirty and the staff was rude.", "We loved every minute of it.",
         "Click here to win a new phone.", "The server is down, please help at once!"]


@pytest.fixture(scope="module")
def server():
    with SkeinServer(ROOT / "models/default") as running:
        yield running


def decide(server, **body):
    answer = httpx.post(server.url + "/v1/decisions", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def body(reading, prompt, text, **more):
    return {"input": text, "questions": QUESTIONS, "reading": reading, "prompt": prompt, **more}


def test_every_reading_gives_the_same_bits_under_load(server):
    bodies = [body(reading, prompt, text, **({"examples": EXAMPLES} if number % 2 else {}))
              for reading in READINGS for prompt in PROMPTS for number, text in enumerate(TEXTS)]
    alone = [decide(server, **b)["answers"] for b in bodies]
    order = list(range(len(bodies))) * 3
    random.Random(7).shuffle(order)
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        for index, answers in zip(order, clients.map(lambda i: decide(server, **bodies[i])["answers"], order)):
            assert answers == alone[index], bodies[index]
    # Neither do they depend on the cache, the cached baseline, or on how a server computes.
    with SkeinServer(ROOT / "models/default", "--scheduling", "prefill-only", "--no-enable-prefix-caching",
                     "--threads", 1) as other:
        for index in random.Random(8).sample(range(len(bodies)), 20):
            assert decide(other, **bodies[index])["answers"] == alone[index], bodies[index]


def test_a_question_is_read_alike_alone_and_beside_others(server):
    for reading in READINGS:
        together = decide(server, **body(reading, "question", TEXTS[0]))["answers"]
        for number, question in enumerate(QUESTIONS):
            single = decide(server, input=TEXTS[0], questions=[question], reading=reading, prompt="question")
            assert single["answers"] == [together[number]]


def test_permuted_answers_do_not_depend_on_the_order(server):
    def probabilities(choices, reading):
        question = CHOICE | {"choices": choices}
        answer = decide(server, input=TEXTS[1], questions=[question], reading=reading)["answers"][0]
        return {option["value"]: option["probability"] for option in answer["probabilities"]}

    choices = CHOICE["choices"]
    for reading in ("permuted", "words+permuted", "words+calibrated+permuted"):
        expected = probabilities(choices, reading)
        assert probabilities(choices[::-1], reading) == expected
        assert probabilities(choices[1:] + choices[:1], reading) == expected


def test_examples_cost_one_prefill(server):
    many = [{"input": f"{text} {n}", "answers": ["positive", False, 0]} for n, text in enumerate(TEXTS * 4)]
    question = {"questions": QUESTIONS[:1], "reading": "words", "prompt": "cue"}
    examples = [{"input": e["input"], "answers": e["answers"][:1]} for e in many]
    decide(server, input="First.", examples=examples, **question)
    usage = decide(server, input="Second.", examples=examples, **question)["usage"]
    fresh = usage["input_tokens"] - usage["input_tokens_details"]["cached_tokens"]
    assert fresh < 64 < usage["input_tokens"] / 4  # the last block of 32, the input and the question


def test_the_official_client(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none")
    answer = client.decisions.create(model="default", input=TEXTS[0], questions=QUESTIONS[:2],
                                     extra_body={"reading": "words+calibrated", "prompt": "cue"})
    first = answer.answers[0]
    assert first.type == "choice" and abs(sum(p.probability for p in first.probabilities) - 1) < 1e-9
    assert 0 < first.diagnostics["label_mass"] <= 1
    with pytest.raises(openai.BadRequestError) as refused:
        client.decisions.create(model="default", input="x", questions=QUESTIONS[:1],
                                extra_body={"reading": "tea leaves"})
    assert refused.value.param == "reading" and "letters, words" in str(refused.value)


def test_options_that_no_text_tells_apart_are_refused(server):
    for values in (["good", " good "], ["good", "\u200b"]):
        question = CHOICE | {"choices": [{"value": value} for value in values]}
        answer = httpx.post(server.url + "/v1/decisions",
                            json={"input": "x", "questions": [question], "reading": "words"})
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "questions[0]"


def test_the_servers_own_reading():
    with SkeinServer(ROOT / "models/default", "--decision-reading", "words", "--decision-prompt", "cue") as server:
        answer = decide(server, input=TEXTS[0], questions=QUESTIONS[:1])["answers"][0]
        assert answer["diagnostics"]["reading"] == "words" and answer["diagnostics"]["prompt"] == "cue"


def test_toy_profile_is_letters(server):
    answer = decide(server, input=TEXTS[0], questions=QUESTIONS[:1])["answers"][0]
    assert answer["diagnostics"]["reading"] == "letters" and answer["diagnostics"]["prompt"] == "chat"
