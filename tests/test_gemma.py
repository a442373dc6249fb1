"""Gemma 3 and EmbeddingGemma over HTTP, against transformers and sentence-transformers (tests/data/gemma)."""
import json
import shutil

import httpx
import numpy
import pytest

from skein_server import ROOT, SkeinServer

DATA = ROOT / "tests/data"


def make_model(name, folder):
    """A model's directory with its tokenizer, and its golden rows."""
    shutil.copytree(DATA / "gemma" / name, folder / name)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DATA / "tokenizers/gemma-style" / file, folder / name / file)
    if name == "chat":
        shutil.copy(DATA / "chat_templates/turns.jinja", folder / name / "chat_template.jinja")
    return folder / name, json.loads((folder / name / "golden.json").read_text())["rows"]


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def chat(server, row):
    return post(server, "/v1/chat/completions", {"model": "chat", "messages": row["messages"], "temperature": 0,
                                                 "max_tokens": len(row["answer_ids"])})


def test_answers_are_those_of_transformers(tmp_path):
    folder, rows = make_model("chat", tmp_path)
    with SkeinServer(folder, "--dtype", "f32") as server:
        for _ in range(2):  # the second time, the prompts are in the cache
            for row in rows:
                answer = chat(server, row)
                assert answer["usage"]["prompt_tokens"] == len(row["prompt_ids"])
                assert answer["choices"][0]["message"]["content"] == row["answer"]


def test_scores_have_the_same_bits_in_chunks_and_from_the_cache(tmp_path):
    folder, rows = make_model("chat", tmp_path)
    body = {"model": "chat", "prompt": rows[2]["prompt_ids"], "max_tokens": 3, "temperature": 0, "logprobs": 2}
    seen = set()
    for options in ([], ["--max-num-batched-tokens", "32", "--scheduling", "chunked-fcfs"], ["--threads", "2"]):
        with SkeinServer(folder, "--dtype", "bf16", *options) as server:
            for _ in range(2):
                choice = post(server, "/v1/completions", body)["choices"][0]
                seen.add(json.dumps([choice["text"], choice["logprobs"]]))
    assert len(seen) == 1, seen


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-5), ("bf16", 0.08)])
def test_embeddings_are_those_of_sentence_transformers(tmp_path, dtype, tolerance):
    folder, rows = make_model("embedding", tmp_path)
    with SkeinServer(folder, "--dtype", dtype) as server:
        vectors = {}
        for name in (None, "query", "document"):
            named = [row for row in rows if row["prompt_name"] == name]
            body = {"model": "embedding", "input": [row["text"] for row in named]}
            if name:
                body["prompt_name"] = name
            answer = post(server, "/v1/embeddings", body)
            assert answer["usage"]["prompt_tokens"] == sum(len(row["ids"]) for row in named)
            for row, item in zip(named, answer["data"]):
                vectors[row["text"], name] = item["embedding"]
                assert numpy.abs(numpy.array(item["embedding"]) - row["embedding"]).max() < tolerance
        alone = post(server, "/v1/embeddings", {"model": "embedding", "input": rows[-3]["text"]})
        assert alone["data"][0]["embedding"] == vectors[rows[-3]["text"], None]
