"""Standard output carries the answers alone; logs and warnings go to standard error."""
import json
import shutil
import subprocess

import pytest

from safetensors_file import read_safetensors, widened, write_safetensors
from skein_server import ROOT, SKEIN_BIN

DEFAULT = ROOT / "models/default"
QUESTIONS = [{"type": "predicate", "instructions": "Is it loud?"}]


@pytest.fixture(name="f16", scope="module")
def f16_model(tmp_path_factory):
    """The default model with its weights in f16, which every command warns of."""
    folder = tmp_path_factory.mktemp("f16") / "model"
    shutil.copytree(DEFAULT, folder)
    tensors = read_safetensors(DEFAULT / "model.safetensors")
    write_safetensors(folder / "model.safetensors", {name: widened(array).astype("<f2") for name, array in tensors.items()})
    config = json.loads((folder / "config.json").read_text())
    config["torch_dtype"] = "float16"
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def run(*command, text=None):
    done = subprocess.run([SKEIN_BIN, *map(str, command)], input=text, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_decide(f16, tmp_path):
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps(QUESTIONS))
    done = run("decide", f16, "--questions", questions, text='"A drum."\n"A mouse."\n')
    assert "f16" in done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all("answers" in json.loads(line) for line in lines), done.stdout


def test_run(f16):
    done = run("run", f16, "Hello", "--max-tokens", "3", "--temperature", "0")
    assert "f16" in done.stderr and "f16" not in done.stdout
    plain = run("run", f16, "Hello", "--max-tokens", "3", "--temperature", "0", "--dtype", "f32")
    assert "[warning]" not in plain.stdout and "[warning]" not in done.stdout


def test_tokenize_and_info(f16):
    ids = run("tokenize", f16, text='{"text": "Hello"}\n')
    assert "[warning]" not in ids.stdout and ids.stdout.strip()
    info = run("model", "info", f16)
    assert "[warning]" not in info.stdout and info.stdout.strip()


def test_output_files_are_safe(f16, tmp_path):
    """A foreign file is left alone, and answers to other questions never come into one file."""
    questions, inputs, out = tmp_path / "q.json", tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    questions.write_text(json.dumps(QUESTIONS))
    inputs.write_text('"A drum."\n"A mouse."\n')
    out.write_text("a letter without an end")
    decide = [SKEIN_BIN, "decide", f16, "--questions", questions, "--output", out]
    refused = subprocess.run([*decide, "--input", inputs], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "holds something else" in refused.stderr
    refused = subprocess.run([*decide, "--input", tmp_path / "nowhere"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert out.read_text() == "a letter without an end"
    out.unlink()
    run(*decide[1:], "--input", inputs)
    answers = out.read_text()
    assert answers.count("\n") == 2
    inputs.write_text('"A drum."\n"A mouse."\n"A shout."\n')
    run(*decide[1:], "--input", inputs)
    assert out.read_text().startswith(answers) and out.read_text().count("\n") == 3
    questions.write_text(json.dumps([{"type": "predicate", "instructions": "Is it big?"}]))
    mixed = subprocess.run([*decide, "--input", inputs], capture_output=True, text=True, check=False)
    assert mixed.returncode == 1 and "other questions" in mixed.stderr
    full = subprocess.run([*decide[:-1], "/dev/full", "--input", inputs], capture_output=True, text=True, check=False)
    assert full.returncode == 1 and "could not be written" in full.stderr
