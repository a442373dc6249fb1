"""The C++ library: the examples, built against an installed copy by CMake and by pkg-config, answer
with the bits of the server."""
import json
import os
import pathlib
import struct
import subprocess
import urllib.request

import pytest

from skein_server import ROOT, SKEIN_BIN, SkeinServer, fetched

BUILD = pathlib.Path(SKEIN_BIN).resolve().parent.parent
EXAMPLES = ROOT / "examples"
TEXT = "The parcel came a week late."


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def floats(values):
    return [struct.pack("<f", value) for value in values]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "library", "--strip")
    return prefix


@pytest.fixture(scope="module")
def examples(installed, tmp_path_factory):
    build = tmp_path_factory.mktemp("examples")
    run("cmake", "-S", EXAMPLES, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}",
        "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", build)
    return build


@pytest.fixture(scope="module")
def smollm2():
    with SkeinServer(fetched("smollm2"), "--max-model-len", 2048) as server:
        yield server


def test_decide(examples, smollm2):
    questions = ["Is the customer content?", "What is it about?=delivery|price|staff"]
    lines = run(examples / "decide", fetched("smollm2"), TEXT, *questions).splitlines()
    body = {"input": TEXT, "questions": [
        {"type": "predicate", "instructions": questions[0]},
        {"type": "choice", "instructions": "What is it about?",
         "choices": [{"value": "delivery"}, {"value": "price"}, {"value": "staff"}]}]}
    predicate, choice = ask(smollm2, "/v1/decisions", body)["answers"]
    assert float(lines[0].split()[-1]) == predicate["probability"]
    told = lines[1].removeprefix("What is it about? ").split()
    assert told[0] == choice["choice"]
    assert [float(word) for word in told[1:]] == [entry["probability"] for entry in choice["probabilities"]]


def test_chat(examples, smollm2):
    message = "Name the capital of France."
    answer = run(examples / "chat", fetched("smollm2"), message, 16)
    body = {"messages": [{"role": "user", "content": message}], "max_tokens": 16, "temperature": 0}
    assert answer == ask(smollm2, "/v1/chat/completions", body)["choices"][0]["message"]["content"] + "\n"


def test_embed_by_pkg_config(installed, tmp_path):
    """Without CMake: one compiler call. The vectors are the server's."""
    (package,) = installed.rglob("skein.pc")
    environment = os.environ | {"PKG_CONFIG_PATH": str(package.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "--static", "skein", env=environment).split()
    program = tmp_path / "embed"
    run("g++", "-std=c++20", EXAMPLES / "embed.cc", "-o", program, *flags)
    texts = [TEXT, "Short."]
    lines = run(program, fetched("minilm"), *texts).splitlines()
    with SkeinServer(fetched("minilm")) as server:
        data = ask(server, "/v1/embeddings", {"input": texts})["data"]
    # Nine digits tell one float32 from another.
    assert [floats(map(float, line.split())) for line in lines] == [floats(entry["embedding"]) for entry in data]


FETCH = """
#include <skein/model.h>
#include <cstdio>
int main(int, char** argv) {
  std::string dir;
  const skein::Status fetched = skein::FetchKnownModel(argv[1], &dir);
  std::puts(fetched.ok() ? dir.c_str() : fetched.message().c_str());
}
"""


def test_a_known_model_is_fetched(installed, tmp_path):
    (package,) = installed.rglob("skein.pc")
    environment = os.environ | {"PKG_CONFIG_PATH": str(package.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "--static", "skein", env=environment).split()
    (tmp_path / "fetch.cc").write_text(FETCH)
    run("g++", "-std=c++20", tmp_path / "fetch.cc", "-o", tmp_path / "fetch", *flags)
    assert run(tmp_path / "fetch", "minilm") == f"{fetched('minilm')}\n"
    assert run(tmp_path / "fetch", "minilm2") == "no known model 'minilm2'; known are smollm2 minilm\n"


def test_errors_say_what_is_wrong(examples):
    wrong = subprocess.run([str(examples / "embed"), "/nowhere/at/all", TEXT], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 1 and "/nowhere/at/all" in wrong.stderr
    deaf = subprocess.run([str(examples / "embed"), str(fetched("smollm2")), TEXT], capture_output=True, text=True,
                          timeout=120)
    assert deaf.returncode == 1 and "embeddings" in deaf.stderr
