"""What `skein serve` says and answers while it loads a model, and which model files it takes."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import httpx
import pytest
from skein_server import ROOT, SKEIN_BIN, SkeinServer

MODEL = ROOT / "models/default"
HUGE = 1000000000000000019884624838656  # int(1e30), which transformers writes where there is no limit


@pytest.fixture
def model(tmp_path):
    """A copy of the default model, to be changed."""
    return pathlib.Path(shutil.copytree(MODEL, tmp_path / "model"))


def change(file, **members):
    file.write_text(json.dumps(json.loads(file.read_text()) | members))


def test_listening_is_said_when_requests_are_answered(tmp_path):
    template = tmp_path / "template"
    os.mkfifo(template)  # loading waits for its text
    process = subprocess.Popen([SKEIN_BIN, "serve", str(MODEL), "--port", "0", "--chat-template", str(template)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = process.stdout.readline()
        url = re.fullmatch(rf"loading {MODEL} on (http://\S+)\n", line).group(1)
        answer = httpx.get(url + "/health")
        assert answer.status_code == 503
        assert "Loading model" in answer.text
        template.write_text("{{ messages[0].content }}")
        while "listening" not in line:
            line = process.stdout.readline()
            assert line, "ended without a word"
        assert line == f"listening on {url}\n"
        assert httpx.get(url + "/health").status_code == 200
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def test_a_server_whose_model_does_not_load_never_listens(model):
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:len(weights) // 2])
    run = subprocess.run([SKEIN_BIN, "serve", str(model), "--port", "0"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "listening" not in run.stdout + run.stderr
    assert "model.safetensors" in run.stderr


def test_numbers_beyond_64_bits_in_model_files(model):
    change(model / "tokenizer_config.json", model_max_length=HUGE)
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        change(model / name, unknown=[HUGE, -HUGE])
    with SkeinServer(model) as server:
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        assert httpx.post(server.url + "/v1/chat/completions", json=body, timeout=60).status_code == 200


@pytest.mark.parametrize("file, member", [("config.json", "hidden_size"), ("config.json", "vocab_size"),
                                          ("config.json", "max_position_embeddings"),
                                          ("generation_config.json", "eos_token_id"),
                                          ("generation_config.json", "top_k")])
def test_a_number_out_of_range_is_named_where_it_is_needed(model, file, member):
    change(model / file, **{member: HUGE})
    run = subprocess.run([SKEIN_BIN, "serve", str(model), "--port", "0"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert member in run.stderr and file in run.stderr
