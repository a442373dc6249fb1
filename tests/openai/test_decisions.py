"""Decisions, scores and ranks from a running server of a random model with Qwen3's tokenizer."""
import concurrent.futures
import json
import math
import urllib.error
import urllib.request

import openai
import pytest
from skein_server import SkeinServer

MODEL = "tiny"
INPUT = "The food was cold and the waiter forgot us. We shall not come back. " * 6
QUESTIONS = [
    {"type": "predicate", "instructions": "The guest is content.", "name": "content"},
    {"type": "choice", "instructions": "What is it about?",
     "choices": [{"value": "restaurant"}, {"value": "hotel", "description": "a place to sleep"},
                 {"value": True}, {"value": "true"}]},
    {"type": "score", "instructions": "How many stars?",
     "levels": [{"label": str(i)} for i in range(1, 6)], "name": "stars"},
]


@pytest.fixture(scope="module")
def server(tiny_qwen3):
    with SkeinServer(tiny_qwen3) as running:
        yield running


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0,
                       timeout=60) as made:
        yield made


def post(server, path, **body):
    data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, data),
                                    timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def token(server, text):
    _, answer = post(server, "/tokenize", prompt=text, add_special_tokens=False)
    assert answer["count"] == 1
    return answer["tokens"][0]


def decide(client, questions, text=INPUT):
    return client.decisions.create(model=MODEL, input=text, questions=questions)


def values(decision):
    return [answer.model_dump() for answer in decision.answers]


def test_decisions_of_the_openai_client(client):
    decision = decide(client, QUESTIONS)
    content, about, stars = decision.answers
    assert decision.model == MODEL
    assert (content.type, content.name) == ("predicate", "content")
    assert 0 < content.probability < 1
    assert (about.type, about.name) == ("choice", None)
    assert [p.value for p in about.probabilities] == ["restaurant", "hotel", True, "true"]
    assert math.isclose(sum(p.probability for p in about.probabilities), 1)
    best = max(about.probabilities, key=lambda p: p.probability)
    assert about.choice == best.value
    assert math.isclose(about.confidence, (4 * best.probability - 1) / 3)
    assert [(p.value, p.label) for p in stars.probabilities] == [(i, str(i + 1)) for i in range(5)]
    assert math.isclose(stars.score, sum(p.value * p.probability for p in stars.probabilities))
    assert decision.usage.output_tokens == 0
    assert decision.usage.total_tokens == decision.usage.input_tokens


def test_one_value_alone_together_cached_and_under_load(client, server):
    text = "Seen for the first time. " + INPUT
    cold = decide(client, QUESTIONS, text)
    assert cold.usage.input_tokens_details.cached_tokens < cold.usage.input_tokens / 2
    warm = decide(client, QUESTIONS, text)
    assert warm.usage.input_tokens == cold.usage.input_tokens
    assert warm.usage.input_tokens_details.cached_tokens > 0
    assert values(warm) == values(cold)
    for question, answer in zip(QUESTIONS, values(cold)):
        assert values(decide(client, [question], text)) == [answer]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        chats = [pool.submit(client.completions.create, model=MODEL, prompt=f"{i} is",
                             max_tokens=40) for i in range(8)]
        for again in [pool.submit(decide, client, QUESTIONS, text) for _ in range(32)]:
            assert values(again.result()) == values(cold)
        for chat in chats:
            chat.result()


def test_probability_is_that_of_the_documented_prompt(client, server):
    prompt = (f"<|im_start|>user\nText:\n{INPUT}\n\nQuestion: The guest is content.\n"
              "Answer with yes or no only.<|im_end|>\n"
              "<|im_start|>assistant\n<think>\n\n</think>\n\n")
    spellings = [[token(server, space + word) for space in ("", " ") for word in words]
                 for words in (("yes", "Yes"), ("no", "No"))]
    labels = sum(spellings, [])
    status, among = post(server, "/v1/score", query=prompt, items=[""], label_token_ids=labels,
                         apply_softmax=True)
    assert status == 200, among
    status, decision = post(server, "/v1/decisions", input=INPUT, questions=QUESTIONS[:1],
                            reading="letters", prompt="chat")
    assert status == 200, decision
    answer = decision["answers"][0]
    assert math.isclose(sum(among["scores"][0][:4]), answer["probability"], rel_tol=1e-12)
    # The same tokens' share of the whole vocabulary, and what a completion says of them.
    _, scores = post(server, "/v1/score", query=prompt, items=[""], label_token_ids=labels)
    assert math.isclose(answer["diagnostics"]["label_mass"], sum(scores["scores"][0]), rel_tol=1e-12)
    biased = client.completions.create(model=MODEL, prompt=prompt, max_tokens=1, temperature=0,
                                       logprobs=0, extra_body={"allowed_token_ids": labels[:1]})
    logprob = biased.choices[0].logprobs.token_logprobs[0]
    assert math.isclose(math.exp(logprob), scores["scores"][0][0], rel_tol=1e-5)


def test_systemone(server):
    questions = {
        "content": {"type": "noul", "instructions": "Is the guest content?"},
        "topic": {"type": "choice", "instructions": "Topic?",
                  "criteria": {"food": "meals", "bed": None}},
        "mood": {"type": "score", "instructions": "Mood?", "criteria": ["bad", "fair", "good"]}}
    status, answer = post(server, "/v1/systemone", state={"review": INPUT, "stars": [1, 2]},
                          questions=questions)
    assert status == 200, answer
    assert list(answer["answers"]) == ["content", "topic", "mood"]
    assert 0 < answer["answers"]["content"]["noul"] < 1
    assert math.isclose(sum(answer["answers"]["topic"]["probabilities"].values()), 1)
    assert answer["answers"]["mood"]["legend"] == {"0": "bad", "1": "fair", "2": "good"}


def test_choice_of_255(client):
    question = {"type": "choice", "instructions": "Which?",
                "choices": [{"value": f"option {i}"} for i in range(255)]}
    answer = decide(client, [question], "Any.").answers[0]
    assert math.isclose(sum(p.probability for p in answer.probabilities), 1)


def test_rerank_as_cohere_and_tei_do(server):
    documents = ["Paris is the capital of France.", "Bread needs flour.", "France is in Europe."]
    query = "What is the capital of France?"
    status, cohere = post(server, "/v2/rerank", model=MODEL, query=query, documents=documents,
                          top_n=2)
    assert status == 200, cohere
    scores = [result["relevance_score"] for result in cohere["results"]]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)
    status, tei = post(server, "/rerank", query=query, texts=documents, return_text=True)
    assert status == 200, tei
    assert [r["score"] for r in tei[:2]] == scores
    assert all(documents[r["index"]] == r["text"] for r in tei)
    _, pairs = post(server, "/v1/score", text_1=query, text_2=documents)
    assert {d["index"]: d["score"] for d in pairs["data"]} == {r["index"]: r["score"] for r in tei}
    status, all_alike = post(server, "/v1/rerank", query=query, documents=documents[:1] * 100)
    assert status == 200
    assert {r["relevance_score"] for r in all_alike["results"]} == {pairs["data"][0]["score"]}


def test_rerank_template_by_option(tiny_qwen3):
    query, documents = "Capital?", ["Paris.", "Bread."]
    prompts = ["<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
               "Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
               "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
               f"<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
               for document in documents]

    def scores(server):
        status, ranks = post(server, "/rerank", query=query, texts=documents)
        assert status == 200, ranks
        return [rank["score"] for rank in sorted(ranks, key=lambda rank: rank["index"])]

    with SkeinServer(tiny_qwen3, "--rerank-template", "qwen3") as running:
        labels = [token(running, "no"), token(running, "yes")]
        expected = [post(running, "/v1/score", query=prompt, items=[""], label_token_ids=labels,
                         apply_softmax=True)[1]["scores"][0][1] for prompt in prompts]
        assert scores(running) == expected
    with SkeinServer(tiny_qwen3) as running:  # its name says nothing of a reranker
        asked_in_words = scores(running)
    assert asked_in_words != expected
    with SkeinServer(tiny_qwen3, "--rerank-template", "none") as running:
        assert scores(running) == asked_in_words


def test_bad_input(client, server):
    """Each is a 4xx that names the field and what is allowed."""
    for fields, param, allowed in [
            ({"questions": []}, "questions", "1 to 200"),
            ({"questions": QUESTIONS[:1] * 201}, "questions", "1 to 200"),
            ({"input": 3}, "input", "string or an array"),
            ({"temperature": "NaN"}, "temperature", "number in (0, 100]"),
            ({"input": "word " * 5000}, "input", "takes at most"),
            ({"input": "word " * 2_000_000}, "input", "2047 tokens of at most 512 bytes"),  # a body of 10 MB
            ({"questions": [{"type": "choice", "instructions": "x",
                             "choices": [{"value": "a"}, {"value": "a"}]}]},
             "questions[0].choices[1].value", "must differ")]:
        status, answer = post(server, "/v1/decisions",
                              **({"input": INPUT, "questions": QUESTIONS} | fields))
        assert status == 400 and answer["error"]["param"] == param, answer
        assert allowed in answer["error"]["message"], answer
    # Beyond the limit of a body: refused before it is read.
    status, answer = post(server, "/v1/decisions", input="x" * (11 << 20), questions=QUESTIONS)
    assert status == 413 and "10485760" in answer["error"]["message"], answer
    # NaN is no JSON.
    status, answer = post(server, "/v1/decisions", input=INPUT, questions=QUESTIONS,
                          temperature=math.nan)
    assert status == 400 and "JSON" in answer["error"]["message"], answer
    same = token(server, "yes")
    status, answer = post(server, "/v1/score", query="q", items=["a"],
                          label_token_ids=[same, same])
    assert status == 400 and answer["error"]["param"] == "label_token_ids", answer
    with pytest.raises(openai.BadRequestError):
        decide(client, [])


def test_decisions_take_no_decode_slots(client, server):
    before = server.metric("skein_decode_slots_total")
    decide(client, QUESTIONS, "Nothing is decoded. " + INPUT)
    assert server.metric("skein_decode_slots_total") == before


def test_card_lists_decisions(server):
    with urllib.request.urlopen(server.url + "/v1/models", timeout=10) as answer:
        card = json.loads(answer.read())["data"][0]
    assert "decisions" in card["architecture"]["output_modalities"]
