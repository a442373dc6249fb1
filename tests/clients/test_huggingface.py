"""POST / and the routes about the model with huggingface_hub's InferenceClient."""
import json
import shutil
import urllib.request

import huggingface_hub
import pytest

from skein_server import ROOT, SkeinServer, fetched


@pytest.fixture(scope="module")
def minilm():
    with SkeinServer(fetched("minilm")) as running:
        yield running


def get(server, path):
    with urllib.request.urlopen(server.url + path, timeout=30) as answer:
        return json.loads(answer.read())


def test_text_generation(smollm2):
    client = huggingface_hub.InferenceClient(smollm2.url)
    text = client.text_generation("The capital of France is", max_new_tokens=4)
    assert "Paris" in text
    assert client.text_generation("The capital of France is", max_new_tokens=4,
                                  return_full_text=True) == "The capital of France is" + text
    assert "".join(client.text_generation("The capital of France is", max_new_tokens=4, stream=True)) == text
    details = client.text_generation("The capital of France is", max_new_tokens=4, details=True).details
    assert details.finish_reason == "length" and details.generated_tokens == 4
    assert len(details.tokens) == 4 and all(token.logprob <= 0 for token in details.tokens)


def test_chat(smollm2):
    client = huggingface_hub.InferenceClient(smollm2.url + "/v1/chat/completions")
    answer = client.chat_completion([{"role": "user", "content": "Name the capital of France."}],
                                    model="smollm2", max_tokens=30, temperature=0)
    assert "Paris" in answer.choices[0].message.content


def test_embeddings(minilm):
    client = huggingface_hub.InferenceClient(minilm.url)
    (vector,) = client.feature_extraction("A text.")
    assert len(vector) == 384
    near, far = client.sentence_similarity("A cat sleeps.", other_sentences=["A cat is asleep.", "Stocks fell."])
    assert far < near <= 1


def test_text_classification(tmp_path):
    """A random classifier: its scores are those of /predict."""
    data = ROOT / "tests/data"
    golden = json.loads((data / "modernbert/classifier/golden.json").read_text())
    model = shutil.copytree(data / "modernbert/classifier", tmp_path / "classifier")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(data / "tokenizers" / golden["tokenizer"] / file, model)
    with SkeinServer(model) as server:
        classes = huggingface_hub.InferenceClient(server.url).text_classification("A text.")
        request = urllib.request.Request(server.url + "/predict", json.dumps({"inputs": "A text."}).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            expected = json.loads(answer.read())
    assert len(classes) > 1
    assert [(entry.label, entry.score) for entry in classes] == [(entry["label"], entry["score"]) for entry in expected]


def test_an_empty_text_has_an_embedding(minilm):
    """The special tokens alone. One such text must not fail the others."""
    body = json.dumps({"inputs": ["A text.", ""]}).encode()
    request = urllib.request.Request(minilm.url + "/embed", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert [len(vector) for vector in json.loads(answer.read())] == [384, 384]


def test_tokens_of_texts(minilm):
    body = json.dumps({"inputs": "Tokens here"}).encode()
    request = urllib.request.Request(minilm.url + "/tokenize", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        (tokens,) = json.loads(answer.read())
    assert [token["text"] for token in tokens] == ["[CLS]", "token", "##s", "here", "[SEP]"]
    assert [token["special"] for token in tokens] == [True, False, False, False, True]
    assert (tokens[3]["start"], tokens[3]["stop"]) == (7, 11)


def test_the_model_is_described(smollm2, minilm):
    assert get(smollm2, "/info")["model_pipeline_tag"] == "text-generation"
    assert get(minilm, "/info")["model_pipeline_tag"] == "feature-extraction"
    assert get(smollm2, "/model_info")["is_generation"] is True
    assert get(smollm2, "/server_info")["context_length"] == 4096
    assert get(smollm2, "/tokenizer_info")["eos_token"] == "<|im_end|>"
