"""DeBERTa classifiers over HTTP: probabilities are those of transformers (tests/data/encoders), and no load changes a bit."""
import concurrent.futures
import json

import numpy
import pytest

from skein_server import SkeinServer
from test_rotating_encoders import DATA, post, served


def classify(server, name, ids):
    return [row["probs"] for row in post(server, "/classify", {"model": name, "input": ids})["data"]]


def softmax(outputs):
    weights = numpy.exp(numpy.array(outputs) - max(outputs))
    return weights / weights.sum()


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-5), ("bf16", 0.02)])
@pytest.mark.parametrize("name", ["deberta-v3-classifier", "deberta-v2-classifier"])
def test_classes_are_those_of_the_library(name, dtype, tolerance, tmp_path):
    golden = json.loads((DATA / name / "golden.json").read_text())["prompts"]
    if name == "deberta-v2-classifier":  # token ids have one segment
        golden = [row for row in golden if row["second_segment_begin"] is None]
    ids = [row["ids"] for row in golden]
    with SkeinServer(served(name, tmp_path), "--dtype", dtype) as server:
        alone = [classify(server, name, [one])[0] for one in ids]
        for row, found in zip(golden, alone, strict=True):
            assert numpy.abs(numpy.array(found) - softmax(row["outputs"])).max() < tolerance
        assert classify(server, name, ids) == alone
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda one: classify(server, name, [one])[0], ids * 8)) == alone * 8
