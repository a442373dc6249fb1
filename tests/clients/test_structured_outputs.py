"""Answers under a schema or a grammar, by a real model, with the official openai client."""
import concurrent.futures
import enum
import json
import re

import openai
import pydantic
import pytest

MODEL = "smollm2"
TEXT = "Maria Lopez, 34, works in Lisbon as a nurse. She speaks Spanish, Portuguese and English."


class Kind(str, enum.Enum):
    PERSON = "person"
    PLACE = "place"


class Job(pydantic.BaseModel):
    title: str
    city: str | None


class Person(pydantic.BaseModel):
    kind: Kind
    name: str = pydantic.Field(max_length=40)
    age: int = pydantic.Field(ge=0, le=130)
    job: Job
    languages: list[str] = pydantic.Field(min_length=1, max_length=4)


def ask(client, text=f"Describe the person as JSON. {TEXT}", **fields):
    fields = {"model": MODEL, "temperature": 0, "max_tokens": 300} | fields
    return client.chat.completions.create(messages=[{"role": "user", "content": text}], **fields)


def test_parse_returns_the_pydantic_model(client):
    answer = client.chat.completions.parse(
        model=MODEL, temperature=0, max_tokens=300, response_format=Person,
        messages=[{"role": "user", "content": f"Describe the person as JSON. {TEXT}"}])
    person = answer.choices[0].message.parsed
    assert isinstance(person, Person)
    assert answer.choices[0].finish_reason == "stop"
    assert person.name == "Maria Lopez" and person.age == 34
    assert json.loads(answer.choices[0].message.content).keys() == Person.model_fields.keys()


def test_parse_of_a_stream(client):
    with client.chat.completions.stream(
            model=MODEL, temperature=0, max_tokens=300, response_format=Person,
            messages=[{"role": "user", "content": f"Describe the person as JSON. {TEXT}"}]) as stream:
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Person)


def test_json_object(client):
    whole = ask(client, response_format={"type": "json_object"}, max_tokens=200, seed=1)
    chunks = ask(client, response_format={"type": "json_object"}, max_tokens=200, seed=1, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    if whole.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text), dict)
    else:
        assert text.startswith("{")


@pytest.mark.parametrize("field, check", [
    ({"structured_outputs": {"regex": r"[A-Z][a-z]{2,8}, (19|20)\d\d"}},
     lambda text: re.fullmatch(r"[A-Z][a-z]{2,8}, (19|20)\d\d", text)),
    ({"guided_regex": r"\d{3}-\d{4}"}, lambda text: re.fullmatch(r"\d{3}-\d{4}", text)),
    ({"guided_grammar": 'root ::= "yes" | "no, " [a-z]{1,8}'}, lambda text: re.fullmatch("yes|no, [a-z]{1,8}", text)),
    ({"structured_outputs": {"grammar": 'start: "(" NUMBER ("," NUMBER)~0..3 ")"\nNUMBER: /[0-9]{1,3}/'}},
     lambda text: re.fullmatch(r"\(\d{1,3}(,\d{1,3}){0,3}\)", text)),
    ({"guided_json": {"type": "array", "items": {"enum": ["a", "b", 3]}, "minItems": 2, "maxItems": 3}},
     lambda text: 2 <= len(json.loads(text)) <= 3 and set(json.loads(text)) <= {"a", "b", 3}),
    ({"structured_outputs": {"choice": ["left", "right"]}}, lambda text: text in ("left", "right")),
])
def test_every_sample_is_a_text_of_the_grammar(client, field, check):
    answer = ask(client, "Answer.", extra_body=field, n=4, temperature=1.5, seed=3, max_tokens=60)
    for choice in answer.choices:
        assert check(choice.message.content), choice.message.content
        assert choice.finish_reason == "stop"
    assert len(answer.choices) == 4
    completion = client.completions.create(model=MODEL, prompt="Answer:", extra_body=field, temperature=1,
                                           seed=4, max_tokens=60)
    assert check(completion.choices[0].text)


def test_a_stop_string_and_the_budget_end_it(client):
    schema = {"type": "json_schema", "json_schema": {"name": "p", "schema": Person.model_json_schema()}}
    stopped = ask(client, response_format=schema, stop='"job"').choices[0]
    assert stopped.finish_reason == "stop" and '"job"' not in stopped.message.content
    cut = ask(client, response_format=schema, max_tokens=5).choices[0]
    assert cut.finish_reason == "length"


def test_the_same_seed_gives_the_same_text_under_load(client):
    """Constrained and free requests beside each other: none changes another."""
    schema = {"type": "json_schema", "json_schema": {"name": "p", "schema": Person.model_json_schema()}}

    def draw(seed):
        if seed % 3 == 2:
            return ask(client, "Tell a story.", seed=seed, temperature=1, max_tokens=40).choices[0].message.content
        return ask(client, response_format=schema, seed=seed, temperature=1.2, max_tokens=60,
                   n=1 + seed % 2).choices[-1].message.content

    alone = [draw(seed) for seed in range(9)]
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        together = list(pool.map(draw, range(9)))
    assert together == alone
    assert len(set(alone)) > 3


@pytest.mark.parametrize("fields, param", [
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strange"}}}},
     "response_format.json_schema.schema"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
        "type": "array", "uniqueItems": True}}}}, "response_format.json_schema.schema"),
    ({"extra_body": {"guided_regex": "(a"}}, "guided_regex"),
    ({"extra_body": {"structured_outputs": {"grammar": "root = a"}}}, "structured_outputs.grammar"),
    ({"extra_body": {"guided_json": {"$ref": "#/$defs/missing"}}}, "guided_json"),
])
def test_mistakes_are_named(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, **fields)
    assert error.value.param == param and param in str(error.value)
