"""Answers that are one of several texts, with the official openai client."""
import openai
import pytest

MODEL = "stories260K"
PROMPT = "Once upon a time, there was a"
CHOICES = ["little girl", "little", "dog", "big red ball!", "\u00e9t\u00e9", " cat"]


def complete(client, choices, older=False, **fields):
    body = {"guided_choice": choices} if older else {"structured_outputs": {"choice": choices}}
    return client.completions.create(model=MODEL, prompt=PROMPT, extra_body=body, **fields)


@pytest.mark.parametrize("older", [False, True])
def test_every_sample_is_a_choice(client, older):
    seen = set()
    for seed in range(12):
        answer = complete(client, CHOICES, older, n=4, temperature=1.8, seed=seed)
        for choice in answer.choices:
            assert choice.text in CHOICES
            assert choice.finish_reason == "stop"
            assert choice.stop_reason is None
            seen.add(choice.text)
    assert len(seen) > 1


def test_each_choice_can_come(client):
    for choice in CHOICES:
        assert complete(client, [choice]).choices[0].text == choice


def test_the_shorter_of_two_can_come(client):
    """A choice that another begins with ends with the end token (2), which may be drawn there."""
    choices = ["little", "little girl", "little girls"]
    chosen = [complete(client, choices, temperature=0, logit_bias={"2": bias}).choices[0].text
              for bias in (100, -100)]
    assert chosen == ["little", "little girls"]


def test_greedy_and_stream_and_penalties(client):
    fields = {"temperature": 0, "presence_penalty": 1.5, "frequency_penalty": 0.5,
              "logit_bias": {"300": 50}}
    whole = complete(client, CHOICES, **fields)
    assert whole.choices[0].text in CHOICES
    chunks = list(complete(client, CHOICES, stream=True, **fields))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "stop"
    narrow = complete(client, CHOICES, temperature=1, top_p=0.01, seed=5)
    assert narrow.choices[0].text in CHOICES


def test_chat(client):
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": PROMPT}], temperature=0, logprobs=True,
        extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    assert answer.choices[0].message.content in ("yes", "no")
    assert len(answer.choices[0].logprobs.content) == answer.usage.completion_tokens


def test_mistakes_are_named(client):
    for choices, fields, param in (([], {}, "structured_outputs.choice"),
                                   (["a", "a"], {}, "structured_outputs.choice"),
                                   (["a"], {"stop": "b"}, "stop"),
                                   (["a long answer of many words"], {"max_tokens": 2},
                                    "max_tokens")):
        with pytest.raises(openai.BadRequestError) as error:
            complete(client, choices, **fields)
        assert error.value.param == param
