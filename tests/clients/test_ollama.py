"""Ollama's routes with its official client."""
import json

import ollama
import pytest

MODEL = "smollm2"
CAPITAL = [{"role": "user", "content": "Name the capital of France."}]
GREEDY = {"temperature": 0, "num_predict": 40}


@pytest.fixture
def llama(smollm2):
    return ollama.Client(host=smollm2.url, timeout=120)


def weather(city: str) -> str:
    """The weather of a city.

    Args:
      city: the city
    """
    return f"It is sunny in {city}."


def test_chat(llama):
    answer = llama.chat(MODEL, CAPITAL, options=GREEDY)
    assert "Paris" in answer.message.content
    assert answer.done and answer.done_reason == "stop" and answer.model == MODEL
    assert answer.eval_count > 0 and answer.prompt_eval_count > 0
    assert answer.total_duration >= answer.prompt_eval_duration > 0
    pieces = list(llama.chat(MODEL + ":latest", CAPITAL, options=GREEDY, stream=True))
    assert "".join(piece.message.content for piece in pieces) == answer.message.content
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_generate(llama):
    answer = llama.generate(MODEL, "Name the capital of France.", options=GREEDY)
    assert answer.response == llama.chat(MODEL, CAPITAL, options=GREEDY).message.content
    pieces = list(llama.generate(MODEL, "Name the capital of France.", options=GREEDY, stream=True))
    assert "".join(piece.response for piece in pieces) == answer.response
    raw = llama.generate(MODEL, "The capital of France is", raw=True, options=GREEDY | {"num_predict": 3})
    assert "Paris" in raw.response and raw.done_reason == "length"
    assert llama.generate(MODEL).done_reason == "load"


def test_formats(llama):
    schema = {"type": "object", "properties": {"capital": {"type": "string", "maxLength": 20}},
              "required": ["capital"]}
    answer = llama.chat(MODEL, CAPITAL, format=schema, options=GREEDY)
    assert json.loads(answer.message.content).keys() == {"capital"}
    free = llama.chat(MODEL, CAPITAL, format="json", options=GREEDY)
    assert free.message.content.lstrip().startswith("{")


def test_tools(llama):
    """A model so small calls when it likes; what it calls is parsed, and results reach it."""
    answer = llama.chat(MODEL, [{"role": "user", "content": "What is the weather in Paris?"}],
                        tools=[weather], options=GREEDY)
    assert answer.message.content or answer.message.tool_calls
    for call in answer.message.tool_calls or []:
        assert isinstance(call.function.arguments, dict)
    after = llama.chat(MODEL, [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Paris"}}}]},
        {"role": "tool", "content": weather("Paris"), "tool_name": "weather"}], options=GREEDY)
    assert "sunny" in after.message.content


def test_models_and_version(llama, smollm2):
    assert [model.model for model in llama.list().models] == [MODEL]
    assert "completion" in llama.show(MODEL).capabilities
    assert llama.ps().models[0].model == MODEL


def test_mistakes(llama):
    with pytest.raises(ollama.ResponseError) as error:
        llama.chat("other", CAPITAL)
    assert error.value.status_code == 404 and "other" in str(error.value)
    with pytest.raises(ollama.ResponseError) as error:
        llama.chat(MODEL, CAPITAL, options={"temperature": -1})
    assert error.value.status_code == 400 and "temperature" in str(error.value)
