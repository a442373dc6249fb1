"""The official openai client against a running server of stories260K."""
import asyncio
import json
import math
import urllib.error
import urllib.request

import openai
import pytest

MODEL = "stories260K"
PROMPT = "Once upon a time"


def request(server, method, path, body=None):
    """Without the openai client: (status, JSON)."""
    data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, data, method=method),
                                    timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def complete(client, prompt=PROMPT, **fields):
    fields = {"max_tokens": 20, "temperature": 0} | fields
    return client.completions.create(model=MODEL, prompt=prompt, **fields)


def test_completion(client):
    answer = complete(client)
    assert answer.object == "text_completion"
    assert answer.model == MODEL
    assert len(answer.choices) == 1
    assert answer.choices[0].text
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 20
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 20
    assert 0 <= answer.usage.prompt_tokens_details.cached_tokens < answer.usage.prompt_tokens


def test_greedy_continuation_is_the_models(client, server):
    # The story goes on as itself: what was generated, given back as a prompt, is continued alike.
    whole = complete(client, max_tokens=40, extra_body={"return_token_ids": True})
    ids = whole.choices[0].token_ids
    prompt_ids = whole.choices[0].prompt_token_ids
    rest = complete(client, prompt=prompt_ids + ids[:15], max_tokens=25,
                    extra_body={"return_token_ids": True})
    assert rest.choices[0].token_ids == ids[15:]


def test_prompt_forms(client, server):
    _, tokens = request(server, "POST", "/tokenize", {"model": MODEL, "prompt": PROMPT})
    ids = tokens["tokens"]
    assert tokens["count"] == len(ids) and tokens["max_model_len"] == 512
    expected = complete(client).choices[0].text
    assert complete(client, prompt=ids).choices[0].text == expected
    for prompts in ([PROMPT, "A dog"], [ids, ids]):
        answer = complete(client, prompt=prompts)
        assert [c.index for c in answer.choices] == [0, 1]
        assert answer.choices[0].text == expected
    assert complete(client, echo=True).choices[0].text == PROMPT + expected


def test_detokenize(server):
    _, tokens = request(server, "POST", "/tokenize",
                        {"prompt": PROMPT, "add_special_tokens": False})
    _, text = request(server, "POST", "/detokenize", {"tokens": tokens["tokens"]})
    assert text == {"prompt": PROMPT}


def test_greedy_tokens_and_logprobs_are_the_golden_ones(client, stories):
    for case in json.loads((stories / "golden.json").read_text())["prompts"]:
        answer = complete(client, prompt=case["prompt_ids"], max_tokens=40, logprobs=5,
                          extra_body={"return_token_ids": True, "ignore_eos": True,
                                      "return_tokens_as_token_ids": True}).choices[0]
        assert answer.token_ids == case["greedy_ids"][:40], case["name"]
        first = case["positions"][len(case["prompt_ids"]) - 1]
        expected = {f"token_id:{i}": p for i, p in zip(first["top5"], first["logprobs_f64"])}
        assert answer.logprobs.top_logprobs[0] == pytest.approx(expected, abs=1e-4)


def test_completion_stream(client):
    expected = complete(client)
    chunks = list(complete(client, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in chunks[:-1]) == expected.choices[0].text
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 20
    assert len({c.id for c in chunks}) == 1


def test_chat_and_its_stream(client):
    fields = {"model": MODEL, "temperature": 0, "max_completion_tokens": 30,
              "messages": [{"role": "user", "content": PROMPT}]}
    answer = client.chat.completions.create(**fields)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    chunks = list(client.chat.completions.create(**fields, stream=True))
    assert chunks[0].object == "chat.completion.chunk"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(c.choices[0].delta.role is None for c in chunks[1:])
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == answer.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == answer.choices[0].finish_reason
    parts = fields | {"messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]}
    assert client.chat.completions.create(**parts).choices[0].message.content == text


def test_logprobs(client):
    answer = complete(client, logprobs=3, max_tokens=10)
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == 10
    for token, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs):
        assert logprob <= 0
        assert len(top) == 3
        assert max(top.values()) == logprob == top[token]  # greedy takes the most likely
        assert sum(math.exp(value) for value in top.values()) <= 1 + 1e-5
    assert logprobs.text_offset[0] == 0
    assert logprobs.text_offset == sorted(logprobs.text_offset)


def test_chat_logprobs(client):
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": PROMPT}], temperature=0, max_tokens=8,
        logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for entry in content:
        assert len(entry.top_logprobs) == 2
        assert entry.top_logprobs[0].logprob == entry.logprob
        assert entry.top_logprobs[0].bytes == entry.bytes
    text = b"".join(bytes(entry.bytes) for entry in content).decode()
    assert text.strip() == answer.choices[0].message.content.strip()


def test_several_choices(client):
    answer = complete(client, n=4, temperature=1, seed=3)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]
    assert len({c.text for c in answer.choices}) > 1
    assert answer.usage.completion_tokens <= 80
    texts = [""] * 4
    for chunk in complete(client, n=4, temperature=1, seed=3, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == [c.text for c in answer.choices]


def test_seed_decides_the_text(client):
    def draw(seed):
        return complete(client, temperature=1, seed=seed, max_tokens=40).choices[0].text
    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(4)}) > 1


def test_stop_strings(client):
    whole = complete(client, max_tokens=60).choices[0].text
    stop = whole[20:24]
    for answer in (complete(client, max_tokens=60, stop=stop),
                   complete(client, max_tokens=60, stop=["no such text", stop])):
        assert answer.choices[0].text == whole[:whole.index(stop)]
        assert answer.choices[0].finish_reason == "stop"
        assert answer.choices[0].stop_reason == stop
    chunks = list(complete(client, max_tokens=60, stop=stop, stream=True))
    assert "".join(c.choices[0].text for c in chunks) == whole[:whole.index(stop)]
    kept = complete(client, max_tokens=60, stop=stop,
                    extra_body={"include_stop_str_in_output": True})
    assert kept.choices[0].text == whole[:whole.index(stop) + len(stop)]


def test_stop_token_ids(client):
    ids = complete(client, extra_body={"return_token_ids": True}).choices[0].token_ids
    stop = ids[10]
    answer = complete(client, extra_body={"stop_token_ids": [stop], "return_token_ids": True})
    assert answer.choices[0].token_ids == ids[:ids.index(stop) + 1]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].stop_reason == stop


def test_logit_bias_and_allowed_tokens(client):
    banned = complete(client, extra_body={"return_token_ids": True}).choices[0].token_ids[0]
    answer = complete(client, logit_bias={str(banned): -100}, max_tokens=1,
                      extra_body={"return_token_ids": True})
    assert answer.choices[0].token_ids[0] != banned
    answer = complete(client, max_tokens=12, extra_body={"return_token_ids": True,
                                                         "allowed_token_ids": [300, 301]})
    assert set(answer.choices[0].token_ids) <= {300, 301}


@pytest.mark.parametrize("field, value", [
    ("temperature", 3.5), ("top_p", 0), ("n", 0), ("max_tokens", -1), ("presence_penalty", 3),
    ("logprobs", 1000), ("logit_bias", {"99999": 1}), ("suffix", "x"),
])
def test_bad_field_is_named(client, field, value):
    with pytest.raises(openai.BadRequestError) as error:
        complete(client, **{field: value})
    assert error.value.param == field
    assert field in error.value.message
    assert error.value.type == "invalid_request_error"


def test_other_errors(client, server):
    # One model is served: any name is its name.
    assert client.completions.create(model="gpt-17", prompt="x", max_tokens=1).model == MODEL
    with pytest.raises(openai.BadRequestError) as long:
        complete(client, prompt=[300] * 600)
    assert "512" in long.value.message
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=[])
    for method, path, body, expected in (("GET", "/v1/nothing", None, 404),
                                         ("GET", "/v1/completions", None, 405),
                                         ("POST", "/v1/completions", "{broken", 400)):
        status, answer = request(server, method, path, body)
        assert status == expected
        assert answer["error"]["message"]


def test_models(client):
    (card,) = client.models.list().data
    assert card.id == MODEL
    assert card.max_model_len == 512
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-17")


def test_sixty_four_clients_get_what_one_gets(client, server):
    prompts = [f"Once there was a number {i}" for i in range(16)]
    expected = [complete(client, prompt=p, max_tokens=24).choices[0].text for p in prompts]

    async def ask(one, i):
        prompt = prompts[i % 16]
        fields = {"model": MODEL, "prompt": prompt, "max_tokens": 24, "temperature": 0}
        if i % 2:
            answer = await one.completions.create(**fields)
            return answer.choices[0].text
        text = ""
        async for chunk in await one.completions.create(**fields, stream=True):
            text += chunk.choices[0].text
        return text

    async def all_at_once():
        clients = [openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="any", timeout=120,
                                      max_retries=0) for _ in range(64)]
        texts = await asyncio.gather(*(ask(one, i) for i, one in enumerate(clients)))
        for one in clients:
            await one.close()
        return texts

    assert asyncio.run(all_at_once()) == [expected[i % 16] for i in range(64)]


def test_metrics(client, server):
    before = server.metric("vllm:request_success_total")
    complete(client)
    metrics = server.metrics()
    assert server.metric("vllm:request_success_total") == before + 1
    label = f'{{model_name="{MODEL}"}}'
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
                 "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
                 "vllm:num_preemptions_total", "vllm:prefix_cache_queries_total",
                 "vllm:prefix_cache_hits_total", "vllm:time_to_first_token_seconds_count",
                 "vllm:inter_token_latency_seconds_count", "vllm:e2e_request_latency_seconds_count",
                 "vllm:request_queue_time_seconds_count", "vllm:request_prefill_time_seconds_count",
                 "vllm:request_prompt_tokens_count", "vllm:iteration_tokens_total_count"):
        assert name + label in metrics, name
