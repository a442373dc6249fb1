"""lm-eval on the server, item by item beside its own `hf` backend, which runs transformers.

Run by `make check-clients`. The server is asked with lm-eval's remote tokenizer: /tokenizer_info, /tokenize and
/detokenize take the place of transformers.
"""
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from skein_server import STORIES, SkeinServer, needed  # noqa: E402

# Runs in a process of its own, where the server's side must do without transformers.
EVALUATE = """
import json, pathlib, sys
backend, model_args, folder, out = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
from importlib.machinery import PathFinder
class WithoutTransformers(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == "transformers" else super().find_spec(name, path, target)
if backend == "local-completions":
    sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTransformers
import lm_eval
from lm_eval.tasks import TaskManager
result = lm_eval.simple_evaluate(model=backend, model_args=model_args, tasks=["skein_choices", "skein_texts"],
                                 log_samples=True, bootstrap_iters=0, device="cpu", batch_size=1,
                                 task_manager=TaskManager(include_path=folder))
samples = {task: [{"id": s["doc"]["id"], "answers": s["filtered_resps"]} for s in of_task]
           for task, of_task in result["samples"].items()}
assert ("transformers" in sys.modules) == (backend == "hf")
pathlib.Path(out).write_text(json.dumps(samples))
"""

BEGINNINGS = ["Once upon a time, there was a little girl named Lily. She loved to",
              "Tom had a big red ball. One day he went to the park and",
              "The dog was sad because", "It was raining. The children"]
ENDINGS = [" play outside in the park.", " sleep.", " the moon fell into the sea, and nobody saw it.", " run and jump"]


def write_tasks(folder):
    choices = [{"id": i, "prompt": text, "choices": ENDINGS, "gold": i % len(ENDINGS)}
               for i, text in enumerate(BEGINNINGS)]
    texts = [{"id": i, "text": text + ending} for i, (text, ending) in enumerate(
        (text, ending) for text in BEGINNINGS for ending in ENDINGS)]
    for name, documents in (("choices", choices), ("texts", texts)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    common = {"dataset_path": "json", "test_split": "test"}
    tasks = {
        "choices": {"output_type": "multiple_choice", "doc_to_text": "{{prompt}}", "doc_to_choice": "{{choices}}",
                    "target_delimiter": "", "doc_to_target": "gold", "metric_list": [{"metric": "acc"}]},
        "texts": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
                  "metric_list": [{"metric": "word_perplexity"}]}}
    for name, task in tasks.items():
        source = {"dataset_kwargs": {"data_files": {"test": str(folder / f"{name}.jsonl")}}}
        (folder / f"skein_{name}.yaml").write_text(json.dumps({"task": f"skein_{name}", **common, **source, **task}))


def evaluate(backend, model_args, folder):
    out = folder / f"{backend}.json"
    done = subprocess.run([sys.executable, "-c", EVALUATE, backend, json.dumps(model_args), str(folder), str(out)],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(out.read_text())


def numbers(sample):
    """The log-likelihoods of an item, each with whether it is the greedy answer where lm-eval tells that."""
    found = []
    for answer in sample["answers"]:
        value, *greedy = answer if isinstance(answer, list) else [answer]
        found.append((float(value), str(greedy[0]) if greedy else None))
    return found


def test_every_item_has_the_likelihood_of_transformers(tmp_path):
    write_tasks(tmp_path)
    model = str(needed(STORIES))
    expected = evaluate("hf", {"pretrained": model, "dtype": "float32", "max_length": 512, "add_bos_token": False}, tmp_path)
    with SkeinServer(model, "--dtype", "f32") as server:
        told = evaluate("local-completions",
                        {"model": "stories260K", "base_url": server.url + "/v1/completions", "num_concurrent": 1,
                         "tokenizer_backend": "remote", "max_length": 512}, tmp_path)
    compared = 0
    for task, samples in expected.items():
        for sample, other in zip(samples, told[task], strict=True):
            assert sample["id"] == other["id"]
            for (value, greedy), (other_value, other_greedy) in zip(numbers(sample), numbers(other), strict=True):
                # Sums of up to 60 log-probabilities, each exact to about 1e-6 in f32.
                assert other_value == pytest.approx(value, abs=2e-4)
                assert greedy == other_greedy
                compared += 1
    assert compared == len(BEGINNINGS) * len(ENDINGS) * 2
