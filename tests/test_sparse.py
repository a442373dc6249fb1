"""SPLADE models over HTTP: sparse vectors are those of sentence-transformers (tests/data/sparse), and no load changes a bit."""
import concurrent.futures
import json
import math
import shutil
import subprocess

import httpx
import pytest

from safetensors_file import read_safetensors, widened
from skein_server import ROOT, SKEIN_BIN, SkeinServer

DATA = ROOT / "tests/data/sparse"
NAMES = sorted(path.name for path in DATA.iterdir())


def texts_of(name):
    return json.loads((DATA / name / "golden.json").read_text())["texts"]


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def sparse(server, inputs):
    """As clients of text-embeddings-inference ask: a list of {"index", "value"} for each text."""
    return post(server, "/embed_sparse", {"inputs": inputs, "truncate": True})


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 2e-5), ("bf16", 0.08)])
@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_those_of_the_library(name, dtype, tolerance):
    golden = texts_of(name)
    texts = [row["text"] for row in golden]
    with SkeinServer(DATA / name, "--dtype", dtype) as server:
        alone = [sparse(server, text)[0] for text in texts]
        for row, found in zip(golden, alone, strict=True):
            wanted = dict(zip(row["indices"], row["values"], strict=True))
            got = {entry["index"]: entry["value"] for entry in found}
            assert list(got) == sorted(got)
            assert all(value > 0 for value in got.values())
            terms = len(row["text"]) if name.endswith("sum") else 1
            for index in wanted.keys() | got.keys():
                assert math.isclose(wanted.get(index, 0), got.get(index, 0), abs_tol=tolerance * terms), index
        assert sparse(server, texts) == alone
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert [one[0] for one in pool.map(lambda text: sparse(server, text), texts * 8)] == alone * 8


def test_other_routes_give_the_same_vector_with_its_zeros():
    name = "bert"
    texts = [row["text"] for row in texts_of(name)]
    with SkeinServer(DATA / name, "--dtype", "f32") as server:
        vectors = sparse(server, texts)
        dense = [[0.0] * 530 for _ in texts]
        for vector, row in zip(vectors, dense, strict=True):
            for entry in vector:
                row[entry["index"]] = entry["value"]
        listed = post(server, "/v1/embeddings", {"model": name, "input": texts})["data"]
        assert [item["embedding"] for item in listed] == dense
        pooled = post(server, "/pooling", {"model": name, "input": texts, "task": "embed"})["data"]
        assert [item["data"] for item in pooled] == dense
        assert post(server, "/embed", {"inputs": texts}) == dense
        # The score of two texts is the product of their vectors.
        scores = post(server, "/v1/score", {"model": name, "text_1": texts[0], "text_2": texts})["data"]
        for item, row in zip(scores, dense, strict=True):
            assert math.isclose(item["score"], sum(x * y for x, y in zip(dense[0], row, strict=True)), rel_tol=1e-6)
        ranks = post(server, "/rerank", {"model": name, "query": texts[0], "documents": texts})["results"]
        assert {one["index"]: one["relevance_score"] for one in ranks} == {i: item["score"] for i, item in enumerate(scores)}
        assert post(server, "/embed_sparse", {"inputs": [[2, 5, 3]]}) == [sparse(server, "a")[0]]
        info = httpx.get(server.url + "/info", timeout=60).json()
        assert info["model_type"] == {"embedding": {"pooling": "splade"}}


def without_modules(name, folder):
    shutil.copytree(DATA / name, folder / name, ignore=shutil.ignore_patterns("modules.json", "1_SpladePooling"))
    return folder / name


def test_pooling_splade_without_the_library_s_files(tmp_path):
    text = texts_of("roberta")[1]["text"]
    with SkeinServer(DATA / "roberta", "--dtype", "f32") as server:
        wanted = sparse(server, text)
    folder = without_modules("roberta", tmp_path)
    with SkeinServer(folder, "--dtype", "f32", "--pooling", "splade") as server:
        assert sparse(server, text) == wanted
    with SkeinServer(folder, "--dtype", "f32") as server:
        answer = httpx.post(server.url + "/embed_sparse", json={"inputs": text}, timeout=60)
        assert answer.status_code == 400
        assert "gives no sparse vectors: it is no SPLADE model" in answer.json()["error"]["message"]
        assert len(post(server, "/embed", {"inputs": text})[0]) == 32
    with SkeinServer(DATA / "roberta", "--dtype", "f32", "--pooling", "mean") as server:
        assert len(post(server, "/embed", {"inputs": text})[0]) == 32


def test_queries_of_a_document_model_have_the_weights_of_their_tokens():
    """As SparseStaticEmbedding of sentence-transformers: each token of the query once, without special ones."""
    name = "distilbert-documents"
    weights = widened(read_safetensors(DATA / name / "query_0_SparseStaticEmbedding/model.safetensors")["weight"])
    documents = [row["text"] for row in texts_of(name) if row["text"]][:4]
    with SkeinServer(DATA / name, "--dtype", "f32") as server:
        of_first = [entry["index"] for entry in sparse(server, documents[0])[0]]
        query = post(server, "/detokenize", {"tokens": of_first + of_first[:5]})["prompt"]
        ids = post(server, "/tokenize", {"prompt": query, "add_special_tokens": False})["tokens"]
        of_query = {id: float(weights[id]) for id in ids}
        expected = [sum(of_query.get(entry["index"], 0) * entry["value"] for entry in vector) for vector in sparse(server, documents)]
        found = [item["score"] for item in post(server, "/v1/score", {"text_1": query, "text_2": documents})["data"]]
        ranked = post(server, "/rerank", {"query": query, "documents": documents})["results"]
    assert max(expected) > 0
    assert found == pytest.approx(expected, rel=1e-6)
    assert [item["relevance_score"] for item in ranked] == sorted(found, reverse=True)


def test_without_a_table_a_model_of_documents_ranks_nothing(tmp_path):
    folder = tmp_path / "documents"
    shutil.copytree(DATA / "distilbert-documents", folder)
    (folder / "query_0_SparseStaticEmbedding/model.safetensors").unlink()
    with SkeinServer(folder, "--dtype", "f32") as server:
        answer = httpx.post(server.url + "/rerank", json={"query": "a", "documents": ["b"]}, timeout=60)
        assert answer.status_code == 400
        assert "its files have no weights of a query's tokens" in answer.json()["error"]["message"]


def test_a_head_that_is_not_there_is_refused(tmp_path):
    shutil.copytree(ROOT / "tests/data/encoders/bert", tmp_path / "bert")
    shutil.copy(DATA / "bert/tokenizer.json", tmp_path / "bert")
    run = subprocess.run([SKEIN_BIN, "serve", str(tmp_path / "bert"), "--port", "0", "--pooling", "splade"],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert "the pooling splade needs a head that predicts masked tokens; the model is a BertModel" in run.stdout + run.stderr
