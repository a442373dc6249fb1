"""ColBERT models over HTTP: vectors of tokens and scores are those of sentence-transformers (tests/data/colbert), and no load
changes a bit."""
import concurrent.futures
import json
import shutil
import subprocess

import httpx
import numpy
import pytest

from skein_server import ROOT, SKEIN_BIN, SkeinServer

DATA = ROOT / "tests/data/colbert"
NAMES = sorted(path.name for path in DATA.iterdir())


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def vectors_of(server, side, texts):
    rows = post(server, "/pooling", {"input": texts, "task": "token_embed", "prompt_name": side})["data"]
    assert [row["index"] for row in rows] == list(range(len(texts)))
    return [row["data"] for row in rows]


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-5), ("bf16", 0.06)])
@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_scores_are_those_of_the_library(name, dtype, tolerance):
    golden = json.loads((DATA / name / "golden.json").read_text())
    queries = [row["text"] for row in golden["queries"]]
    documents = [row["text"] for row in golden["documents"]]
    with SkeinServer(DATA / name, "--dtype", dtype) as server:
        for side, rows in (("query", golden["queries"]), ("document", golden["documents"])):
            found = vectors_of(server, side, [row["text"] for row in rows])
            for row, vectors in zip(rows, found, strict=True):
                assert numpy.array(vectors).shape == numpy.array(row["vectors"]).shape, row["text"]
                assert numpy.abs(numpy.array(vectors) - row["vectors"]).max() < tolerance
        assert vectors_of(server, "document", documents) == \
            [row["data"] for row in post(server, "/pooling", {"input": documents})["data"]]
        for query, wanted in zip(queries, golden["scores"], strict=True):
            body = {"queries": query, "documents": documents}
            scores = [row["score"] for row in post(server, "/v1/score", body)["data"]]
            assert numpy.abs(numpy.array(scores) - wanted).max() < tolerance * 40
            ranks = post(server, "/v1/rerank", {"query": query, "documents": documents})["results"]
            assert {row["index"]: row["relevance_score"] for row in ranks} == dict(enumerate(scores))
            assert [row["relevance_score"] for row in ranks] == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_no_load_changes_a_bit(name):
    golden = json.loads((DATA / name / "golden.json").read_text())
    asks = [("query", row["text"]) for row in golden["queries"]] + [("document", row["text"]) for row in golden["documents"]]
    with SkeinServer(DATA / name, "--dtype", "bf16") as server:
        alone = [vectors_of(server, side, [text])[0] for side, text in asks]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda ask: vectors_of(server, ask[0], [ask[1]])[0], asks * 6)) == alone * 6


def test_other_routes_say_what_to_ask():
    with SkeinServer(DATA / "bert-stanford", "--dtype", "f32") as server:
        for path in ("/v1/embeddings", "/embed", "/embed_sparse"):
            answer = httpx.post(server.url + path, json={"input": "a", "inputs": "a"}, timeout=60)
            assert answer.status_code == 400
            assert answer.json()["error"]["param"] == "model"
        assert httpx.get(server.url + "/v1/models", timeout=60).json()["data"][0]["architecture"]["output_modalities"] == \
            ["embeddings"]


def refusal(folder):
    run = subprocess.run([SKEIN_BIN, "serve", str(folder), "--port", "0"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    return run.stdout + run.stderr


def test_other_architectures_are_refused_by_name(tmp_path):
    """As jinaai/jina-colbert-v2, whose XLM-RoBERTa rotates."""
    folder = tmp_path / "colbert"
    shutil.copytree(DATA / "bert-stanford", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "xlm-roberta", "position_embedding_type": "rotary"}))
    assert "'model_type' is 'xlm-roberta', which does not go with HF_ColBERT" in refusal(folder)


def test_a_module_that_would_be_left_out_is_refused(tmp_path):
    folder = tmp_path / "colbert"
    shutil.copytree(DATA / "modernbert-pylate", folder)
    path = folder / "1_Dense/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "use_residual": True}))
    assert "'use_residual' is true" in refusal(folder)
    path = folder / "modules.json"
    path.write_text(path.read_text().replace("pylate.models.Dense.Dense", "pylate.models.CNN"))
    assert "the module 'pylate.models.CNN' is not supported" in refusal(folder)
