"""The Python package: what it answers has the bits of the server's answers.

Run by `make check-clients`, which builds the wheel and installs it beside these packages.
"""
import asyncio
import gc
import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import skein  # noqa: E402
from peft_adapter import write_adapter  # noqa: E402
from random_models import modernbert  # noqa: E402
from skein_server import STORIES, SkeinServer, fetched, needed  # noqa: E402

PROMPTS = ["Once upon a time", "The dog", "Lily and Tom went to the park."]


def ask(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def is_copy(array):
    """Whether the numbers lie in memory of NumPy's, not in an answer's."""
    while isinstance(array.base, numpy.ndarray):
        array = array.base
    return array.flags.owndata


@pytest.fixture(scope="module")
def stories():
    with skein.LLM(needed(STORIES), threads=2) as llm:
        yield llm


@pytest.fixture(scope="module")
def smollm2():
    with skein.LLM("smollm2", decision_lora="none", max_model_len=2048) as llm:
        yield llm


@pytest.fixture(scope="module")
def smollm2_server():
    with SkeinServer(fetched("smollm2"), "--decision-lora", "none", "--max-model-len", 2048) as server:
        yield server


@pytest.fixture(scope="module")
def minilm():
    with skein.LLM(fetched("minilm")) as llm:
        yield llm


def test_the_package_has_the_version_of_the_server():
    assert importlib.metadata.version("skein-llm") == skein.__version__


def test_a_known_model_is_fetched_by_its_name():
    assert pathlib.Path(skein.fetch("minilm")) == fetched("minilm")
    with pytest.raises(ValueError, match="no known model 'minilm2'; known are smollm2 minilm"):
        skein.fetch("minilm2")


@pytest.mark.skipif(not shutil.which("dpkg"), reason="names packages of Debian")
def test_the_packages_that_the_module_needs_are_told():
    (module,) = pathlib.Path(skein.__file__).parent.glob("_skein*.so")
    linked, needed_by_module = (subprocess.run([*command, module], capture_output=True, text=True, check=True).stdout
                                for command in (["ldd"], ["readelf", "-d"]))
    owners = set()
    for name, path in re.findall(r"(\S+) => (/\S+)", linked):
        if f"[{name}]" not in needed_by_module:
            continue
        file = str(pathlib.Path(path).resolve())
        # /lib is /usr/lib, and dpkg knows one of the names.
        told = subprocess.run(["dpkg", "-S", file, file.removeprefix("/usr")], capture_output=True, text=True).stdout
        owners.add(told.split(":")[0])
    assert owners - {"libc6", "libgcc-s1", "libstdc++6"} == set(skein.DEBIAN_PACKAGES.split())
    page = (ROOT / "docs/python.md").read_text()
    assert set(skein.DEBIAN_PACKAGES.split()) <= set(page.split())


def test_generate(stories):
    params = skein.SamplingParams(max_tokens=12, temperature=0, logprobs=2, prompt_logprobs=1)
    outputs = stories.generate(PROMPTS, params, use_tqdm=False)
    with SkeinServer(STORIES) as server:
        for prompt, output in zip(PROMPTS, outputs):
            body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 2, "prompt_logprobs": 1,
                    "return_token_ids": True}
            (choice,) = ask(server, "/v1/completions", body)["choices"]
            (completion,) = output.outputs
            assert completion.text == choice["text"] and completion.finish_reason == choice["finish_reason"]
            assert completion.token_ids == choice["token_ids"]
            assert output.prompt == prompt and output.prompt_token_ids == choice["prompt_token_ids"]
            told = [entry[token].logprob for entry, token in zip(completion.logprobs, completion.token_ids)]
            assert told == choice["logprobs"]["token_logprobs"]
            assert [{token: entry.logprob for token, entry in position.items()}
                    for position in output.prompt_logprobs[1:]] == [
                {int(token): entry["logprob"] for token, entry in position.items()}
                for position in choice["prompt_logprobs"][1:]]
            assert min(entry.rank for entry in completion.logprobs[0].values() if entry.rank) == 1


def test_inputs_of_generate(stories):
    greedy = skein.SamplingParams(temperature=0, max_tokens=6)
    (text,) = stories.generate("Once upon a time", greedy)
    ids = text.prompt_token_ids
    for prompt in (ids, numpy.array(ids), {"prompt_token_ids": ids}, {"prompt": "Once upon a time"}, [ids]):
        (output,) = stories.generate(prompt, greedy)
        assert output.outputs[0].token_ids == text.outputs[0].token_ids
    samples = skein.SamplingParams(n=3, seed=7, max_tokens=8)
    once, again = stories.generate(["The cat"] * 2, samples)
    assert len(once.outputs) == 3 and len({output.text for output in once.outputs}) > 1
    assert [output.text for output in once.outputs] == [output.text for output in again.outputs]
    short, long = stories.generate(PROMPTS[:2], [skein.SamplingParams(max_tokens=1), greedy])
    assert (len(short.outputs[0].token_ids), len(long.outputs[0].token_ids)) == (1, 6)


def test_the_answers_live_longer_than_the_model(tmp_path):
    with skein.LLM(modernbert("embedding", tmp_path)) as llm:
        matrix = llm.encode(PROMPTS)
        copy = matrix.copy()
    del llm
    gc.collect()
    assert not is_copy(matrix) and (matrix == copy).all()


def test_errors_name_the_input_and_the_field(stories):
    with pytest.raises(skein.RequestError, match="temperature") as error:
        stories.generate(PROMPTS, [skein.SamplingParams(), skein.SamplingParams(temperature=9), None])
    assert (error.value.index, error.value.param, error.value.status) == (1, "temperature", 400)
    with pytest.raises(skein.RequestError, match="embeddings"):
        stories.embed("A text.")
    with pytest.raises(ValueError, match="--no-such-option"):
        skein.LLM(STORIES, no_such_option=1)
    with pytest.raises(RuntimeError, match="nowhere"):
        skein.LLM("/nowhere/at/all")
    with pytest.raises(TypeError, match="inputs must be a text"):
        stories.generate(None)
    closed = skein.LLM(STORIES)
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        closed.generate("Once")


def test_more_prompts_than_the_queue_takes():
    with skein.LLM(STORIES, max_queued_requests=8) as llm:
        outputs = llm.generate(["The dog"] * 50, skein.SamplingParams(max_tokens=2, temperature=0))
    assert len({tuple(output.outputs[0].token_ids) for output in outputs}) == 1


def test_other_threads_run_meanwhile(stories):
    """The interpreter's lock is free while the model computes."""
    counts, running = [0], threading.Event()

    def count():
        while not running.is_set():
            counts[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counts[0]
    stories.generate("Once", skein.SamplingParams(max_tokens=300, ignore_eos=True))
    counted = counts[0] - before
    running.set()
    counter.join()
    assert counted > 1000


def test_chat_decide_score_and_rerank(smollm2, smollm2_server):
    messages = [{"role": "user", "content": "Name the capital of France."}]
    (answer,) = smollm2.chat(messages, skein.SamplingParams(max_tokens=16, temperature=0, logprobs=1))
    body = {"messages": messages, "max_tokens": 16, "temperature": 0, "logprobs": True}
    (choice,) = ask(smollm2_server, "/v1/chat/completions", body)["choices"]
    (completion,) = answer.outputs
    assert completion.text == choice["message"]["content"] and "Paris" in completion.text
    assert [entry[token].logprob for entry, token in zip(completion.logprobs, completion.token_ids)] == [
        token["logprob"] for token in choice["logprobs"]["content"]]

    questions = ["Is the customer content?",
                 {"type": "choice", "instructions": "What is it about?", "name": "topic",
                  "choices": [{"value": "delivery"}, {"value": "price"}]}]
    inputs = ["The parcel came a week late.", "It was cheaper elsewhere."]
    decided = smollm2.decide(inputs, questions)
    for text, decisions in zip(inputs, decided):
        body = {"input": text, "questions": [{"type": "predicate", "instructions": questions[0]}, questions[1]]}
        predicate, topic = ask(smollm2_server, "/v1/decisions", body)["answers"]
        assert decisions[0].probability == predicate["probability"]
        assert decisions[1].choice == topic["choice"] and decisions[1].name == "topic"
        assert decisions[1].probabilities == topic["probabilities"]
    assert smollm2.decide(inputs[0], questions)[0] == decided[0][0]
    assert smollm2.decide(inputs[0], questions[0]) == [decided[0][0]]

    documents = ["Paris is the capital of France.", "Cats sleep a lot."]
    scores = [output.outputs.score for output in smollm2.score("What is the capital of France?", documents)]
    body = {"queries": "What is the capital of France?", "documents": documents}
    assert scores == [entry["score"] for entry in ask(smollm2_server, "/v1/score", body)["data"]]
    ranked = smollm2.rerank("What is the capital of France?", documents)
    body = {"query": "What is the capital of France?", "documents": documents}
    assert ranked == ask(smollm2_server, "/rerank", body)["results"]


def test_embeddings(minilm):
    texts = [f"A text about the number {i}." for i in range(70)]
    matrix = minilm.encode(texts)
    assert matrix.shape == (70, 384) and matrix.dtype == numpy.float32
    outputs = minilm.embed(texts, use_tqdm=False)
    assert all((output.outputs.embedding == row).all() for output, row in zip(outputs, matrix))
    # The vectors are the answers' own memory: 32 texts are one answer.
    assert not any(is_copy(output.outputs.embedding) for output in outputs)
    assert not is_copy(minilm.encode(texts[:32])) and is_copy(matrix)
    assert minilm.encode("A text about the number 3.").tolist() == matrix[3].tolist()
    assert (minilm.encode(texts, batch_size=70) == matrix).all()
    with SkeinServer(fetched("minilm")) as server:
        for begin in (0, 69):
            entry = ask(server, "/v1/embeddings", {"input": texts[begin]})["data"][0]
            assert numpy.array(entry["embedding"], numpy.float32).tolist() == matrix[begin].tolist()


def test_classes_and_pairs(tmp_path):
    with skein.LLM(modernbert("classifier", tmp_path)) as llm:
        (output,) = llm.classify("A text.")
        assert output.outputs.num_classes == len(llm.info["class_labels"]) > 1
        assert output.outputs.probs.sum() == pytest.approx(1, abs=1e-6)
        assert llm.info["class_labels"][int(output.outputs.probs.argmax())] == output.outputs.label
    with skein.LLM(modernbert("reranker", tmp_path)) as llm:
        documents = ["One.", "Another text.", "A third one, which is longer."]
        scores = llm.predict([("A query", document) for document in documents])
        assert scores.shape == (3,) and scores.dtype == numpy.float32
        ranked = llm.rank("A query", documents, top_k=2, return_documents=True)
        assert [entry["corpus_id"] for entry in ranked] == numpy.argsort(-scores, kind="stable")[:2].tolist()
        assert [entry["score"] for entry in ranked] == sorted(scores, reverse=True)[:2]
        assert ranked[0]["text"] == documents[ranked[0]["corpus_id"]]
        assert llm.predict(("A query", documents[1])) == scores[1]


def test_adapters(tmp_path):
    """Each method that reads or writes text asks the adapter it is told."""
    folder = write_adapter(tmp_path / "one", json.loads((STORIES / "config.json").read_text()), 1,
                           ["self_attn.q_proj", "mlp.up_proj"])
    asked = {
        "generate": lambda llm, **more: [
            output.outputs[0].text for output in llm.generate(
                PROMPTS, skein.SamplingParams(max_tokens=12, temperature=0), use_tqdm=False, **more)],
        "encode": lambda llm, **more: llm.encode(PROMPTS, **more).tolist(),
        "predict": lambda llm, **more: llm.predict([(PROMPTS[0], text) for text in PROMPTS[1:]], **more).tolist(),
        "rerank": lambda llm, **more: llm.rerank(PROMPTS[0], PROMPTS[1:], **more)}
    with skein.LLM(STORIES, lora=[f"one={folder}"], pooling="mean") as llm:
        for name, ask_for in asked.items():
            base = ask_for(llm)
            assert ask_for(llm, adapter="one") != base and ask_for(llm) == base, name
        with pytest.raises(skein.RequestError, match="two"):
            llm.generate("Once", adapter="two")


@pytest.mark.parametrize("shown", [{"use_tqdm": True}, {"show_progress_bar": True}])
def test_progress_is_shown(minilm, capsys, shown):
    minilm.encode(["A text."] * 70, **shown)
    assert "3/3" in capsys.readouterr().err
    minilm.encode(["A text."] * 70)
    assert capsys.readouterr().err == ""


def test_coroutines(stories):
    greedy = skein.SamplingParams(max_tokens=20, temperature=0)

    async def ask_all(llm):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        outputs = await asyncio.gather(*(llm.generate(prompt, greedy) for prompt in PROMPTS))
        ticking.cancel()
        with pytest.raises(skein.RequestError):
            await llm.generate("Once", skein.SamplingParams(max_tokens=-1))
        return outputs, ticks

    with skein.AsyncLLM(STORIES) as llm:
        outputs, ticks = asyncio.run(ask_all(llm))
    assert [output.outputs[0].text for (output,) in outputs] == [
        output.outputs[0].text for output in stories.generate(PROMPTS, greedy)]
    assert ticks > 10
