"""POST / and the routes about the model with huggingface_hub's InferenceClient."""
import json
import math
import urllib.error
import urllib.request

import huggingface_hub
import pytest

from random_models import modernbert
from skein_server import SkeinServer, fetched


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


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_text_classification(tmp_path):
    """The scores are those of /predict."""
    with SkeinServer(modernbert("classifier", tmp_path)) as server:
        classes = huggingface_hub.InferenceClient(server.url).text_classification("A text.")
        expected = post(server, "/predict", {"inputs": "A text."})
    assert len(classes) > 1
    assert [(entry.label, entry.score) for entry in classes] == [(entry["label"], entry["score"]) for entry in expected]


def test_zero_shot_classification(smollm2):
    client = huggingface_hub.InferenceClient(smollm2.url)
    labels = ["sports", "cooking"]
    ranked = client.zero_shot_classification("The striker scored twice and the team won the match.", labels)
    assert [entry.label for entry in ranked] == labels
    assert sum(entry.score for entry in ranked) == pytest.approx(1)
    each = client.zero_shot_classification("The striker scored twice.", labels, multi_label=True,
                                           hypothesis_template="The text is about {}.")
    assert {entry.label for entry in each} == set(labels) and all(0 < entry.score < 1 for entry in each)


def test_zero_shot_classification_by_entailment(tmp_path):
    """A random head with the classes of an entailment model: its scores are those of its own outputs."""
    model = modernbert("classifier", tmp_path)
    config = json.loads((model / "config.json").read_text())
    names = ["entailment", *(f"other {i}" for i in range(len(config["id2label"]) - 1))]
    config["id2label"] = {str(i): name for i, name in enumerate(names)}
    config["label2id"] = {name: i for i, name in enumerate(names)}
    (model / "config.json").write_text(json.dumps(config))
    text, labels = "A text about cats.", ["cats", "dogs", "fish"]
    with SkeinServer(model) as server:
        ranked = huggingface_hub.InferenceClient(server.url).zero_shot_classification(text, labels)
        logits = {}
        for label in labels:
            body = {"inputs": [text, f"This example is {label}."], "raw_scores": True}
            outputs = post(server, "/predict", body)
            (logits[label],) = [entry["score"] for entry in outputs if entry["label"] == "entailment"]
    total = sum(math.exp(logit) for logit in logits.values())
    assert {entry.label: entry.score for entry in ranked} == pytest.approx(
        {label: math.exp(logit) / total for label, logit in logits.items()}, rel=1e-6)


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
    info = get(smollm2, "/tokenizer_info")
    assert info["eos_token"] == "<|im_end|>" and "add_generation_prompt" in info["chat_template"]
    assert get(minilm, "/tokenizer_info")["chat_template"] is None


def test_the_vectors_of_all_tokens(minilm):
    """Their mean, made as long as 1, is the text's vector."""
    texts = ["Tokens here", "A longer text than the other one."]
    for text, tokens in zip(texts, post(minilm, "/embed_all", {"inputs": texts})):
        (count,) = (len(entry) for entry in post(minilm, "/tokenize", {"inputs": text}))
        assert len(tokens) == count and all(len(vector) == 384 for vector in tokens)
        mean = [sum(column) / count for column in zip(*tokens)]
        length = math.sqrt(sum(value * value for value in mean))
        (pooled,) = post(minilm, "/embed", {"inputs": text})
        assert [value / length for value in mean] == pytest.approx(pooled, abs=2e-7)
    with pytest.raises(urllib.error.HTTPError) as error:
        post(minilm, "/embed_all", {"inputs": []})
    assert error.value.code == 400


def test_a_language_model_has_no_vectors_of_tokens(smollm2):
    with pytest.raises(urllib.error.HTTPError) as error:
        post(smollm2, "/embed_all", {"inputs": "A text."})
    assert error.value.code == 400
