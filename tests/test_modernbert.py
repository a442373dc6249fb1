"""ModernBERT models over HTTP, against transformers and sentence-transformers (tests/data/modernbert).

Tolerances are those of the models' golden tests (src/model/forward/encoder_golden_test.cc).
"""
import json
import math
import shutil

import httpx
import numpy
import pytest

from skein_server import ROOT, SkeinServer

DATA = ROOT / "tests/data"


@pytest.fixture(params=["embedding", "classifier", "reranker"])
def model(request, tmp_path):
    """The directory of a model with its tokenizer, and its golden rows."""
    return make_model(request.param, tmp_path)


def make_model(name, folder):
    golden = json.loads((DATA / "modernbert" / name / "golden.json").read_text())
    shutil.copytree(DATA / "modernbert" / name, folder / name)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DATA / "tokenizers" / golden["tokenizer"] / file, folder / name / file)
    return folder / name, golden["rows"]


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def embed(server, texts):
    answer = post(server, "/v1/embeddings", {"model": "embedding", "input": texts})
    return [item["embedding"] for item in answer["data"]], answer["usage"]["prompt_tokens"]


def classify(server, texts):
    answer = post(server, "/classify", {"model": "classifier", "input": texts})
    return answer["data"], answer["usage"]["prompt_tokens"]


def rerank(server, query, documents):
    answer = post(server, "/rerank", {"model": "reranker", "query": query, "documents": documents})
    scores = [None] * len(documents)
    for result in answer["results"]:
        scores[result["index"]] = result["relevance_score"]
    return scores


def softmax(outputs):
    weights = numpy.exp(numpy.array(outputs) - max(outputs))
    return weights / weights.sum()


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-5), ("bf16", 0.08)])
def test_embeddings_are_those_of_sentence_transformers(tmp_path, dtype, tolerance):
    folder, rows = make_model("embedding", tmp_path)
    with SkeinServer(folder, "--dtype", dtype) as server:
        vectors, num_tokens = embed(server, [row["text"] for row in rows])
        assert num_tokens == sum(len(row["ids"]) for row in rows)
        expected = numpy.array([row["embedding"] for row in rows])
        assert numpy.abs(numpy.array(vectors) - expected).max() < tolerance
        alone = [embed(server, [row["text"]])[0][0] for row in rows]
        assert alone == vectors


def test_a_long_text_is_read_whole_by_default(tmp_path):
    folder, _ = make_model("embedding", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 2048
    (folder / "config.json").write_text(json.dumps(config))
    texts = ["some words " * 700, "a short one"]
    with SkeinServer(folder) as server:
        vectors, num_tokens = embed(server, texts)
        assert 1400 <= num_tokens < 2048
    with SkeinServer(folder, "--max-num-batched-tokens", "2048") as server:
        assert embed(server, texts)[0] == vectors
    with SkeinServer(folder, "--max-num-batched-tokens", "512") as server:
        answer = httpx.post(server.url + "/v1/embeddings", json={"model": "embedding", "input": texts}, timeout=60)
        assert answer.status_code == 400 and "512" in answer.json()["error"]["message"]


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-5), ("bf16", 0.08)])
def test_classes_are_those_of_transformers(tmp_path, dtype, tolerance):
    folder, rows = make_model("classifier", tmp_path)
    labels = json.loads((folder / "config.json").read_text())["id2label"]
    with SkeinServer(folder, "--dtype", dtype) as server:
        answers, num_tokens = classify(server, [row["text"] for row in rows])
        assert num_tokens == sum(len(row["ids"]) for row in rows)
        for answer, row in zip(answers, rows):
            expected = softmax(row["outputs"])
            assert numpy.abs(numpy.array(answer["probs"]) - expected).max() < tolerance
            assert answer["label"] in labels.values()
            if dtype == "f32":
                assert answer["label"] == labels[str(expected.argmax())]
        alone = [classify(server, [row["text"]])[0][0]["probs"] for row in rows]
        assert alone == [answer["probs"] for answer in answers]


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-5), ("bf16", 0.08)])
def test_relevance_is_that_of_transformers(tmp_path, dtype, tolerance):
    folder, rows = make_model("reranker", tmp_path)
    query, documents = rows[0]["text"], [row["pair"] for row in rows]
    with SkeinServer(folder, "--dtype", dtype) as server:
        scores = rerank(server, query, documents)
        for score, row in zip(scores, rows):
            assert abs(score - 1 / (1 + math.exp(-row["outputs"][0]))) < tolerance
        assert [rerank(server, query, [document])[0] for document in documents] == scores


def test_generation_is_refused(model):
    folder, _ = model
    with SkeinServer(folder) as server:
        body = {"model": folder.name, "prompt": "hello", "max_tokens": 2}
        answer = httpx.post(server.url + "/v1/completions", json=body, timeout=60)
        assert 400 <= answer.status_code < 500, answer.text
        assert "message" in answer.json()["error"]
