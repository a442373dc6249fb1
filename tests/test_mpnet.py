"""MPNet over HTTP: embeddings and classes are those of transformers (tests/data/encoders), and no load changes a bit."""
import concurrent.futures
import json
import shutil

import numpy
import pytest

from skein_server import ROOT, SkeinServer
from test_deberta import classify, softmax
from test_rotating_encoders import DATA, embeddings, post

TOKENIZER = ROOT / "tests/data/tokenizers/mpnet-style"


def served(name, folder, max_seq_length=None):
    """A copy of the model with MPNet's kind of tokenizer, whose ids are cut to those that the model has, and the modules of
    sentence-transformers: the mean, and vectors of length one."""
    copy = folder / name
    shutil.copytree(DATA / name, copy)
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    vocab_size = json.loads((copy / "config.json").read_text())["vocab_size"]
    vocab = {piece: i for piece, i in tokenizer["model"]["vocab"].items() if i < vocab_size - 1}
    mask = next(token for token in tokenizer["added_tokens"] if token["content"] == "<mask>")
    vocab["<mask>"] = mask["id"] = vocab_size - 1
    tokenizer["model"]["vocab"] = vocab
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    (copy / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MPNetTokenizer", "mask_token": "<mask>"}))
    if max_seq_length is None:
        return copy
    modules = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]
    (copy / "modules.json").write_text(json.dumps([
        {"idx": int(name), "name": name, "path": path, "type": "sentence_transformers.models." + kind} for name, path, kind in modules]))
    (copy / "1_Pooling").mkdir()
    hidden = json.loads((copy / "config.json").read_text())["hidden_size"]
    (copy / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}))
    (copy / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_seq_length, "do_lower_case": False}))
    return copy


@pytest.mark.parametrize("name", ["mpnet", "mpnet-masked-lm"])
@pytest.mark.parametrize(("arguments", "tolerance"), [(("--dtype", "f32"), 5e-6), (("--dtype", "bf16"), 0.01),
                                                      (("--dtype", "f32", "--quantization", "int8"), 0.01)])
def test_embeddings_are_those_of_the_library(name, arguments, tolerance, tmp_path):
    golden = json.loads((DATA / name / "golden.json").read_text())["prompts"]
    ids = [row["ids"] for row in golden]
    with SkeinServer(served(name, tmp_path, max_seq_length=600), *arguments) as server:
        alone = [embeddings(server, name, [one])[0] for one in ids]
        for row, found in zip(golden, alone, strict=True):
            mean = numpy.array(row["mean"])
            assert numpy.abs(numpy.array(found) - mean / numpy.linalg.norm(mean)).max() < tolerance
        assert embeddings(server, name, ids) == alone
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda one: embeddings(server, name, [one])[0], ids * 4)) == alone * 4


def test_texts_are_tokens_between_the_special_ones(tmp_path):
    with SkeinServer(served("mpnet", tmp_path, max_seq_length=8), "--dtype", "f32") as server:
        body = {"model": "mpnet", "input": "a <mask> b"}
        found = post(server, "/v1/embeddings", body)
        vocab = json.loads((tmp_path / "mpnet/tokenizer.json").read_text())["model"]["vocab"]
        ids = [vocab[piece] for piece in ("<s>", "a", "<mask>", "b", "</s>")]
        assert ids[2] == 63
        assert found["usage"]["prompt_tokens"] == len(ids)
        assert found["data"][0]["embedding"] == embeddings(server, "mpnet", [ids])[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-5), ("bf16", 0.02)])
def test_classes_are_those_of_the_library(dtype, tolerance, tmp_path):
    name = "mpnet-classifier"
    golden = json.loads((DATA / name / "golden.json").read_text())["prompts"]
    ids = [row["ids"] for row in golden]
    with SkeinServer(served(name, tmp_path), "--dtype", dtype) as server:
        alone = [classify(server, name, [one])[0] for one in ids]
        for row, found in zip(golden, alone, strict=True):
            assert numpy.abs(numpy.array(found) - softmax(row["outputs"])).max() < tolerance
        assert classify(server, name, ids) == alone
