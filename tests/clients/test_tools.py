"""Calls of tools by a real model, with the official openai client."""
import json

import openai
import pytest

MODEL = "smollm2"
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "add", "description": "Adds two integers.",
        "parameters": {"type": "object", "properties": {
            "a": {"type": "integer", "maximum": 9999, "minimum": 0},
            "b": {"type": "integer", "maximum": 9999, "minimum": 0}}, "required": ["a", "b"]}}},
]
QUESTION = [{"role": "user", "content": "What is the weather in Paris, in celsius?"}]


def ask(client, messages=QUESTION, **fields):
    fields = {"model": MODEL, "temperature": 0, "max_tokens": 120, "tools": TOOLS} | fields
    return client.chat.completions.create(messages=messages, **fields)


def test_a_named_function_is_called(client):
    answer = ask(client, tool_choice={"type": "function", "function": {"name": "get_weather"}})
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert not choice.message.content
    (call,) = choice.message.tool_calls
    assert call.type == "function" and call.function.name == "get_weather" and call.id
    assert json.loads(call.function.arguments)["city"] == "Paris"


def test_a_required_call_is_one_of_the_tools(client):
    answer = ask(client, tool_choice="required", parallel_tool_calls=False, n=4, temperature=1, seed=2)
    for choice in answer.choices:
        (call,) = choice.message.tool_calls
        arguments = json.loads(call.function.arguments)
        if call.function.name == "add":
            assert isinstance(arguments["a"], int) and isinstance(arguments["b"], int)
        else:
            assert call.function.name == "get_weather" and isinstance(arguments["city"], str)


def test_the_stream_is_the_whole_answer(client):
    forced = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
    whole = ask(client, **forced).choices[0].message.tool_calls[0].function
    chunks = list(ask(client, stream=True, **forced))
    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert deltas[0].function.name == whole.name and deltas[0].id
    assert len(deltas) > 2
    assert "".join(delta.function.arguments for delta in deltas) == whole.arguments
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_pydantic_tools_are_parsed(client):
    import pydantic

    class GetWeather(pydantic.BaseModel):
        """The weather of a city."""
        city: str

    answer = client.chat.completions.parse(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=120, tool_choice="required",
        tools=[openai.pydantic_function_tool(GetWeather)])
    parsed = answer.choices[0].message.tool_calls[0].function.parsed_arguments
    assert isinstance(parsed, GetWeather) and parsed.city


def test_results_go_back_to_the_model(client):
    first = ask(client, tool_choice={"type": "function", "function": {"name": "get_weather"}})
    call = first.choices[0].message.tool_calls[0]
    messages = QUESTION + [first.choices[0].message,
                           {"role": "tool", "tool_call_id": call.id, "content": "It is sunny, 21 degrees."}]
    answer = ask(client, messages, tool_choice="none")
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert "21" in answer.choices[0].message.content or "sunny" in answer.choices[0].message.content


def test_auto_answers_or_calls(client):
    choice = ask(client, tool_choice="auto").choices[0]
    assert choice.message.content or choice.message.tool_calls
    if choice.message.tool_calls:
        assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize("fields, param", [
    ({"tool_choice": {"type": "function", "function": {"name": "missing"}}}, "tool_choice"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "strange"}}}],
      "tool_choice": "required"}, "tool_choice"),
    ({"tools": [], "tool_choice": "required"}, "tool_choice"),
])
def test_mistakes_are_named(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, **fields)
    assert error.value.param == param
