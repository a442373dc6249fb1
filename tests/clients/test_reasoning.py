"""Reasoning with the official clients. The small model tells stories; a template that opens a thought
makes all of its text reasoning, and one that closes it makes all of it content."""
import anthropic
import ollama
import openai
import pytest

from skein_server import STORIES, SkeinServer

MODEL = "stories260K"
ONCE = [{"role": "user", "content": "Once upon a time"}]
TEMPLATE = """{{ bos_token }}{% for m in messages %}{{ m.content }}{% if m.reasoning_content %}[{{ m.reasoning_content }}]
{%- endif %}{% endfor %}<think>
{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}"""


@pytest.fixture(scope="module")
def thinker(stories, tmp_path_factory):
    template = tmp_path_factory.mktemp("chat") / "template.jinja"
    template.write_text(TEMPLATE)
    with SkeinServer(STORIES, "--chat-template", template) as running:
        yield running


@pytest.fixture
def gpt(thinker):
    with openai.OpenAI(base_url=thinker.url + "/v1", api_key="any", max_retries=0, timeout=60) as made:
        yield made


def test_chat(gpt):
    fields = {"model": MODEL, "messages": ONCE, "temperature": 0, "max_completion_tokens": 20}
    answer = gpt.chat.completions.create(**fields).choices[0]
    assert answer.message.content is None and answer.finish_reason == "length"
    assert answer.message.reasoning_content and answer.message.reasoning == answer.message.reasoning_content
    chunks = list(gpt.chat.completions.create(**fields, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == answer.message.reasoning_content
    assert not any(delta.content for delta in deltas)
    off = gpt.chat.completions.create(**fields, reasoning_effort="none").choices[0].message
    assert off.content and not hasattr(off, "reasoning_content")
    constrained = gpt.chat.completions.create(**fields, extra_body={"guided_regex": "[a-z ]*"}).choices[0].message
    assert constrained.content and not hasattr(constrained, "reasoning_content")
    again = gpt.chat.completions.create(**fields | {"messages": ONCE + [
        {"role": "assistant", "content": "", "reasoning_content": answer.message.reasoning_content}]})
    assert again.usage.prompt_tokens > 20
    with pytest.raises(openai.BadRequestError) as error:
        gpt.chat.completions.create(**fields, reasoning_effort="endless")
    assert error.value.param == "reasoning_effort"


def test_responses(gpt):
    fields = {"model": MODEL, "input": "Once upon a time", "temperature": 0, "max_output_tokens": 20}
    answer = gpt.responses.create(**fields)
    (item,) = answer.output
    assert item.type == "reasoning" and item.content[0].type == "reasoning_text" and item.content[0].text
    assert answer.status == "incomplete" and answer.output_text == ""
    with gpt.responses.stream(**fields) as stream:
        events = list(stream)
    text = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    assert events[-1].type == "response.incomplete"
    assert text == item.content[0].text == events[-1].response.output[0].content[0].text
    off = gpt.responses.create(**fields, reasoning={"effort": "none"})
    assert [item.type for item in off.output] == ["message"] and off.output_text
    after = gpt.responses.create(**fields | {"input": [*ONCE, item.model_dump(), {
        "role": "assistant", "content": "The end."}]})
    assert after.usage.input_tokens > answer.usage.input_tokens + 20


def test_messages(thinker):
    with anthropic.Anthropic(base_url=thinker.url, api_key="any", max_retries=0, timeout=60) as claude:
        fields = {"model": MODEL, "max_tokens": 20, "messages": ONCE, "extra_body": {"temperature": 0}}
        answer = claude.messages.create(**fields)
        (block,) = answer.content
        assert block.type == "thinking" and block.thinking and block.signature == ""
        with claude.messages.stream(**fields) as stream:
            final = stream.get_final_message()
        assert final.content[0].thinking == block.thinking and final.stop_reason == "max_tokens"
        off = claude.messages.create(**fields, thinking={"type": "disabled"})
        assert [part.type for part in off.content] == ["text"]


def test_ollama(thinker):
    llama = ollama.Client(host=thinker.url, timeout=60)
    options = {"temperature": 0, "num_predict": 20}
    answer = llama.chat(MODEL, ONCE, options=options)
    assert answer.message.thinking and not answer.message.content
    pieces = llama.chat(MODEL, ONCE, options=options, stream=True)
    assert "".join(piece.message.thinking or "" for piece in pieces) == answer.message.thinking
    off = llama.chat(MODEL, ONCE, options=options, think=False)
    assert off.message.content and not off.message.thinking
    assert llama.generate(MODEL, "Once upon a time", options=options).thinking
    assert "thinking" in llama.show(MODEL).capabilities
