"""Log-probabilities of prompts and of named tokens, with the official openai client."""
import json

import openai
import pytest

MODEL = "stories260K"
PROMPT = "Once upon a time, there was a little girl"


def complete(client, prompt=PROMPT, **fields):
    fields = {"max_tokens": 0, "temperature": 0} | fields
    return client.completions.create(model=MODEL, prompt=prompt, **fields).choices[0]


def test_prompt_logprobs_are_the_golden_ones(client, stories):
    for case in json.loads((stories / "golden.json").read_text())["prompts"]:
        ids = case["prompt_ids"]
        found = complete(client, ids, extra_body={"prompt_logprobs": 5}).prompt_logprobs
        assert len(found) == len(ids)
        assert found[0] is None
        for position, entry in enumerate(found[1:], 1):
            golden = case["positions"][position - 1]
            expected = dict(zip(map(str, golden["top5"]), golden["logprobs_f64"]))
            own = str(ids[position])
            assert own in entry
            top = {key: value["logprob"] for key, value in entry.items()
                   if key in expected or value["rank"] <= 5}
            assert top == pytest.approx(expected, abs=1e-4)
            by_rank = sorted(entry.values(), key=lambda value: value["rank"])
            assert [v["logprob"] for v in by_rank] == sorted((v["logprob"] for v in by_rank),
                                                             reverse=True)


def test_echo_tells_what_generating_told(client):
    whole = complete(client, max_tokens=24, logprobs=2, extra_body={"return_token_ids": True})
    ids = whole.prompt_token_ids + whole.token_ids
    echo = complete(client, ids, echo=True, logprobs=2)
    assert echo.finish_reason == "length"
    assert echo.text == PROMPT + whole.text
    assert len(echo.logprobs.tokens) == len(ids)
    assert echo.logprobs.token_logprobs[0] is None
    assert echo.logprobs.top_logprobs[0] is None
    # The same bits, one token at a time or all at once.
    assert echo.logprobs.token_logprobs[-24:] == whole.logprobs.token_logprobs
    assert echo.logprobs.top_logprobs[-24:] == whole.logprobs.top_logprobs
    assert echo.logprobs.text_offset == sorted(echo.logprobs.text_offset)
    offset = echo.logprobs.text_offset[-1]
    assert echo.text[offset:].strip() == echo.logprobs.tokens[-1].strip()


def test_echo_with_an_answer_and_in_a_stream(client):
    one = complete(client, max_tokens=8, echo=True, logprobs=0)
    prompt_only = complete(client, echo=True, logprobs=0)
    count = len(prompt_only.logprobs.tokens)
    assert one.logprobs.token_logprobs[:count] == prompt_only.logprobs.token_logprobs
    assert len(one.logprobs.tokens) == count + 8
    text, logprobs = "", []
    for chunk in client.completions.create(model=MODEL, prompt=PROMPT, max_tokens=8, temperature=0,
                                           echo=True, logprobs=0, stream=True):
        text += chunk.choices[0].text
        logprobs += chunk.choices[0].logprobs.token_logprobs
    assert text == one.text
    assert logprobs == one.logprobs.token_logprobs


def test_prompt_logprobs_do_not_change_with_the_cache(client):
    prompt = PROMPT + " who lived in a small house near the wood with her mother and her dog." * 2
    first = complete(client, prompt, extra_body={"prompt_logprobs": 1}).prompt_logprobs
    again = complete(client, prompt, extra_body={"prompt_logprobs": 1}).prompt_logprobs
    assert first == again
    start = len(first) - 5
    late = complete(client, prompt, extra_body={"prompt_logprobs": 1, "prompt_logprob_start": start})
    assert late.prompt_logprobs == [None] * start + first[start:]


def test_prompt_logprobs_of_a_chat(client):
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": PROMPT}], max_tokens=1, temperature=0,
        extra_body={"prompt_logprobs": 0})
    assert len(answer.prompt_logprobs) == answer.usage.prompt_tokens
    assert answer.prompt_logprobs[0] is None
    assert all(len(entry) == 1 for entry in answer.prompt_logprobs[1:])


def test_named_tokens(client):
    full = complete(client, max_tokens=6, logprobs=10,
                    extra_body={"return_tokens_as_token_ids": True})
    ids = [int(name.split(":")[1]) for name in full.logprobs.top_logprobs[0]]
    named = complete(client, max_tokens=6, extra_body={"return_tokens_as_token_ids": True,
                                                       "logprob_token_ids": ids})
    assert named.text == full.text
    for few, many in zip(named.logprobs.top_logprobs, full.logprobs.top_logprobs):
        assert {f"token_id:{i}" for i in ids} <= set(few)
        assert all(few[name] == many[name] for name in set(few) & set(many))
    assert named.logprobs.top_logprobs[0] == full.logprobs.top_logprobs[0]


@pytest.mark.parametrize("fields, param", [
    ({"extra_body": {"prompt_logprobs": -1}}, "prompt_logprobs"),
    ({"extra_body": {"prompt_logprobs": 1000}}, "prompt_logprobs"),
    ({"extra_body": {"prompt_logprobs": 1}, "stream": True}, "prompt_logprobs"),
    ({"extra_body": {"prompt_logprobs": 1, "prompt_logprob_start": 400}}, "prompt_logprob_start"),
    ({"extra_body": {"logprob_token_ids": [5, 5]}}, "logprob_token_ids"),
])
def test_mistakes_are_named(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        client.completions.create(model=MODEL, prompt=PROMPT, max_tokens=1, **fields)
    assert error.value.param == param
