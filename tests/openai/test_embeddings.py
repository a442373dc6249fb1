"""Embeddings by the official openai client, as base64 (what it asks for by itself) and as floats, from random
models in the layout of sentence-transformers: with pooling alone, and with a Dense module behind it."""
import base64
import json
import shutil
import struct

import httpx
import numpy
import openai
import pytest
from skein_server import SkeinServer

TEXTS = ["The food was cold.", "Bread needs flour, water and salt.", "A"]
OUT = 24


def write_safetensors(path, tensors):
    """Name -> f32 array."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def sentence_model(base, folder, dense):
    """A copy of `base` that embeds: the mean of the hidden states, then `dense` = (W, b), if any."""
    shutil.copytree(base, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"matryoshka_dimensions": [OUT // 2]}))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": "mean"}))
    if dense is not None:
        modules.append(("2_Dense", "Dense"))
        (folder / "2_Dense").mkdir()
        (folder / "2_Dense/config.json").write_text(json.dumps(
            {"in_features": dense[0].shape[1], "out_features": dense[0].shape[0], "bias": True,
             "activation_function": "torch.nn.modules.activation.Tanh"}))
        write_safetensors(folder / "2_Dense/model.safetensors",
                          {"linear.weight": dense[0], "linear.bias": dense[1]})
    modules.append((f"{len(modules)}_Normalize", "Normalize"))
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
         for i, (path, kind) in enumerate(modules)]))
    return folder


@pytest.fixture(scope="module")
def dense(tiny_qwen3):
    hidden = json.loads((tiny_qwen3 / "config.json").read_text())["hidden_size"]
    numbers = numpy.random.default_rng(5)
    return (numbers.standard_normal((OUT, hidden)).astype("f4") / 8,
            numbers.standard_normal(OUT).astype("f4"))


def serve(model):
    return SkeinServer(model, "--dtype", "f32", "--served-model-name", "embedder")


@pytest.fixture(scope="module")
def plain(tiny_qwen3, tmp_path_factory):
    with serve(sentence_model(tiny_qwen3, tmp_path_factory.mktemp("plain") / "m", None)) as running:
        yield running


@pytest.fixture(scope="module")
def server(tiny_qwen3, dense, tmp_path_factory):
    with serve(sentence_model(tiny_qwen3, tmp_path_factory.mktemp("dense") / "m", dense)) as running:
        yield running


def client_of(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0, timeout=60)


@pytest.fixture
def client(server):
    with client_of(server) as made:
        yield made


def embed(client, texts=TEXTS, **fields):
    answer = client.embeddings.create(model="embedder", input=texts, **fields)
    assert [item.index for item in answer.data] == list(range(len(answer.data)))
    return numpy.array([item.embedding for item in answer.data])


def test_base64_by_default_holds_the_same_floats(client):
    by_default = embed(client)
    floats = embed(client, encoding_format="float")
    assert by_default.shape == (len(TEXTS), OUT)
    assert (by_default.astype("f4") == floats.astype("f4")).all()
    coded = client.embeddings.create(model="embedder", input=TEXTS, encoding_format="base64")
    for item, row in zip(coded.data, floats):
        assert (numpy.frombuffer(base64.b64decode(item.embedding), "<f4") == row.astype("f4")).all()
    assert numpy.abs(numpy.linalg.norm(floats, axis=1) - 1).max() < 1e-6


def test_a_text_alone_in_a_list_and_as_ids(client, server):
    together = embed(client)
    for text, row in zip(TEXTS, together):
        assert (embed(client, text)[0] == row).all()
    ids = httpx.post(server.url + "/tokenize", json={"prompt": TEXTS[1]}).json()["tokens"]
    assert (embed(client, [ids])[0] == together[1]).all()
    assert (embed(client, ids)[0] == together[1]).all()


def test_dimensions(client):
    whole, half = embed(client), embed(client, dimensions=OUT // 2)
    cut = whole[:, :OUT // 2]
    assert numpy.abs(half - cut / numpy.linalg.norm(cut, axis=1, keepdims=True)).max() < 1e-6
    with pytest.raises(openai.BadRequestError) as error:
        embed(client, dimensions=OUT - 1)
    assert error.value.body["param"] == "dimensions"


def test_dense_module_is_applied_to_the_pooled_state(client, plain, dense):
    with client_of(plain) as pooled_client:
        pooled = embed(pooled_client, extra_body={"normalize": False})
    expected = numpy.tanh(pooled @ dense[0].T + dense[1])
    assert pooled.shape[1] == dense[0].shape[1]
    assert numpy.abs(embed(client, extra_body={"normalize": False}) - expected).max() < 1e-5
    expected /= numpy.linalg.norm(expected, axis=1, keepdims=True)
    assert numpy.abs(embed(client) - expected).max() < 1e-5


def test_usage_and_mistakes(client):
    usage = client.embeddings.create(model="embedder", input=TEXTS).usage
    assert usage.prompt_tokens == usage.total_tokens > len(TEXTS)
    for fields, param in [({"input": []}, "input"), ({"input": ""}, "input"),
                          ({"input": [TEXTS[0], ""]}, "input[1]"),
                          ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
                          ({"input": "word " * 5000}, "input")]:
        with pytest.raises(openai.BadRequestError) as error:
            client.embeddings.create(model="embedder", **fields)
        assert error.value.body["param"] == param, error.value.body
