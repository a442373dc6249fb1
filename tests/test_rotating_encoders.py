"""NomicBERT and GTE over HTTP: embeddings are those of transformers (tests/data/encoders), and no load changes a bit."""
import concurrent.futures
import json
import shutil
import string

import httpx
import numpy
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from skein_server import ROOT, SkeinServer

DATA = ROOT / "tests/data/encoders"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTERS = string.ascii_lowercase


def served(name, folder, data=DATA):
    """A copy of the model with a tokenizer of letters."""
    shutil.copytree(data / name, folder / name)
    pieces = [*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS)]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / name / "tokenizer.json"))
    (folder / name / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return folder / name


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def embeddings(server, name, inputs):
    return [item["embedding"] for item in post(server, "/v1/embeddings", {"model": name, "input": inputs})["data"]]


@pytest.mark.parametrize("name", ["nomic-bert", "nomic-bert-published", "gte", "gte-published"])
def test_embeddings_are_those_of_the_library(name, tmp_path):
    golden = json.loads((DATA / name / "golden.json").read_text())["prompts"]
    golden = [row for row in golden if row["second_segment_begin"] is None]
    ids = [row["ids"] for row in golden]
    with SkeinServer(served(name, tmp_path), "--dtype", "f32") as server:
        alone = [embeddings(server, name, [one])[0] for one in ids]
        for row, found in zip(golden, alone, strict=True):
            mean = numpy.array(row["mean"])
            assert numpy.abs(numpy.array(found) - mean / numpy.linalg.norm(mean)).max() < 5e-6
        assert embeddings(server, name, ids) == alone
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda one: embeddings(server, name, [one])[0], ids * 8)) == alone * 8


def test_a_reranker_has_the_same_bits_under_load(tmp_path):
    name = "gte-reranker-published"
    documents = ["the cat sat", "a dog ran home", "rain", "nothing of the kind is here"]

    def scores(server, query):
        found = post(server, "/rerank", {"model": name, "query": query, "documents": documents})["results"]
        return sorted((one["index"], one["relevance_score"]) for one in found)

    queries = ["where is the cat", "dogs", "weather today"]
    with SkeinServer(served(name, tmp_path), "--dtype", "f32") as server:
        alone = [scores(server, query) for query in queries]
        assert len({str(one) for one in alone}) == len(queries)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda query: scores(server, query), queries * 8)) == alone * 8
