"""/v1/responses with the official openai client."""
import json

import openai
import pydantic
import pytest

MODEL = "smollm2"
CAPITAL = "Name the capital of France."
TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather of a city.", "strict": True,
          "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 30}},
                         "required": ["city"], "additionalProperties": False}}]


class City(pydantic.BaseModel):
    capital: str = pydantic.Field(max_length=20)


def ask(client, given=CAPITAL, **fields):
    return client.responses.create(**({"model": MODEL, "input": given, "temperature": 0,
                                       "max_output_tokens": 40} | fields))


def test_a_response(client):
    answer = ask(client, instructions="You answer in one sentence.")
    assert "Paris" in answer.output_text
    assert answer.status == "completed" and answer.object == "response"
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    items = ask(client, [{"role": "developer", "content": "You answer in one sentence."},
                         {"role": "user", "content": [{"type": "input_text", "text": CAPITAL}]}])
    assert items.output_text == answer.output_text
    cut = ask(client, max_output_tokens=2)
    assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens"


def test_the_stream_is_the_whole_answer(client):
    whole = ask(client)
    events = list(ask(client, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text == events[-1].response.output_text
    with client.responses.stream(model=MODEL, input=CAPITAL, temperature=0, max_output_tokens=40) as stream:
        assert stream.get_final_response().output_text == text


def test_schemas(client):
    answer = client.responses.parse(model=MODEL, input=CAPITAL, text_format=City, temperature=0,
                                    max_output_tokens=60)
    assert isinstance(answer.output_parsed, City)


def test_tools(client):
    question = "What is the weather in Paris?"
    forced = {"tools": TOOLS, "tool_choice": {"type": "function", "name": "get_weather"},
              "max_output_tokens": 80}
    answer = ask(client, question, **forced)
    (call,) = answer.output
    assert call.type == "function_call" and call.name == "get_weather"
    assert json.loads(call.arguments)["city"]
    events = list(ask(client, question, stream=True, **forced))
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == call.arguments and len(deltas) > 1
    after = ask(client, [{"role": "user", "content": question}, *answer.output,
                         {"type": "function_call_output", "call_id": call.call_id,
                          "output": "It is sunny, 21 degrees."}], tools=TOOLS, tool_choice="none")
    assert "21" in after.output_text or "sunny" in after.output_text


@pytest.mark.parametrize("fields, param", [
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "strange"}}}},
     "response_format.json_schema.schema"),
])
def test_mistakes_are_named(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, **fields)
    assert error.value.param == param
