"""/v1/messages with the official anthropic client."""
import json

import anthropic
import pytest

MODEL = "smollm2"
GREEDY = {"temperature": 0}
TOOLS = [{"name": "get_weather", "description": "The weather of a city.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 30}}, "required": ["city"]}}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]


@pytest.fixture
def claude(smollm2):
    with anthropic.Anthropic(base_url=smollm2.url, api_key="any", max_retries=0, timeout=120) as made:
        yield made


def ask(claude, text="Name the capital of France.", **fields):
    fields = {"model": MODEL, "max_tokens": 40, "extra_body": GREEDY,
              "messages": [{"role": "user", "content": text}]} | fields
    return claude.messages.create(**fields)


def test_a_message(claude):
    answer = ask(claude, system="You answer in one sentence.")
    assert answer.type == "message" and answer.role == "assistant" and answer.model == MODEL
    assert "Paris" in answer.content[0].text
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens > 0
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens > 10
    again = ask(claude, system=[{"type": "text", "text": "You answer in one sentence."}],
                messages=[{"role": "user", "content": [{"type": "text", "text": "Name the capital of France."}]}])
    assert again.content[0].text == answer.content[0].text


def test_the_stream_is_the_whole_answer(claude):
    whole = ask(claude)
    with claude.messages.stream(model=MODEL, max_tokens=40, extra_body=GREEDY, messages=[
            {"role": "user", "content": "Name the capital of France."}]) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_stops(claude):
    assert ask(claude, max_tokens=2).stop_reason == "max_tokens"
    stopped = ask(claude, stop_sequences=["Paris"])
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "Paris"
    assert "Paris" not in stopped.content[0].text


def test_tools(claude):
    forced = {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "get_weather"}, "messages": WEATHER}
    answer = ask(claude, max_tokens=80, **forced)
    (call,) = answer.content
    assert answer.stop_reason == "tool_use"
    assert call.type == "tool_use" and call.name == "get_weather" and call.input["city"]
    with claude.messages.stream(model=MODEL, max_tokens=80, extra_body=GREEDY, **forced) as stream:
        final = stream.get_final_message()
    assert final.content[0].input == call.input and final.stop_reason == "tool_use"
    after = ask(claude, tools=TOOLS, tool_choice={"type": "none"}, messages=WEATHER + [
        {"role": "assistant", "content": [block.model_dump() for block in answer.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                      "content": "It is sunny, 21 degrees."}]}])
    assert "21" in after.content[0].text or "sunny" in after.content[0].text


def test_schemas(claude):
    schema = {"type": "object", "properties": {"capital": {"type": "string", "maxLength": 20}},
              "required": ["capital"], "additionalProperties": False}
    answer = ask(claude, max_tokens=60, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert json.loads(answer.content[0].text).keys() == {"capital"}


def test_tokens_are_counted(claude):
    count = claude.messages.count_tokens(model=MODEL, messages=WEATHER).input_tokens
    usage = ask(claude, messages=WEATHER, max_tokens=1).usage
    assert count == usage.input_tokens + usage.cache_read_input_tokens


def test_mistakes_have_anthropics_form(claude):
    with pytest.raises(anthropic.BadRequestError) as error:
        ask(claude, messages=[{"role": "robot", "content": "x"}])
    assert error.value.body["error"]["type"] == "invalid_request_error"
    assert "messages[0].role" in error.value.body["error"]["message"]
    with pytest.raises(anthropic.NotFoundError):
        ask(claude, model="other")
