#!/usr/bin/env python3
"""Holds the reading `words` against lm-eval's own ranking of options by log-likelihood.

    python tools/lm_eval_words.py MODEL_DIR [--items bench/quality/items.jsonl] [--json FILE]

Makes a local lm-eval task of the choices in a file of labelled items, whose prompts are those of the prompt
`question` (docs/decisions.md), and runs it by lm-eval's `local-completions` against `skein serve MODEL_DIR`. Then asks
/v1/decisions the same, once with `spellings: exact`, which is what lm-eval ranks, and once with all spellings. Needs
tools/requirements-dev.txt (lm-eval).
"""
import argparse
import json
import pathlib
import sys
import tempfile

import httpx

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from skein_server import SkeinServer  # noqa: E402


def prompt(item):
    options = "; ".join(c["value"] + (f" ({c['description']})" if c.get("description") else "")
                        for c in item["question"]["choices"])
    return f"Text: {item['input']}\nQuestion: {item['question']['instructions']}\nOptions: {options}\nAnswer:"


def documents(path):
    items = [json.loads(line) for line in path.read_text().splitlines()]
    return [{"id": i["id"], "prompt": prompt(i), "choices": [c["value"] for c in i["question"]["choices"]],
             "gold": i["answer"], "item": json.dumps(i)}
            for i in items if i.get("question", {}).get("type") == "choice"]


def rank_by_lm_eval(url, model_dir, docs):
    """The option of the largest log-likelihood, by document."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    with tempfile.TemporaryDirectory() as work:
        data = pathlib.Path(work) / "choices.jsonl"
        data.write_text("".join(json.dumps(d | {"index": n}) + "\n" for n, d in enumerate(docs)))
        task = {"task": "skein_choices", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
                "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{prompt}}",
                "doc_to_choice": "{{choices}}", "doc_to_target": "{{choices.index(gold)}}",
                "metric_list": [{"metric": "acc"}]}
        yaml = pathlib.Path(work) / "skein_choices.yaml"
        yaml.write_text(json.dumps(task))  # JSON is YAML
        result = lm_eval.simple_evaluate(
            model="local-completions", tasks=["skein_choices"], log_samples=True, bootstrap_iters=0,
            task_manager=TaskManager(include_path=work), verbosity="ERROR",
            model_args={"model": pathlib.Path(model_dir).name, "base_url": url + "/v1/completions", "num_concurrent": 8,
                        "tokenizer": str(model_dir), "tokenizer_backend": "huggingface", "max_length": 2048})
    ranked = {}
    for sample in result["samples"]["skein_choices"]:
        likelihoods = [r[0] if isinstance(r, (list, tuple)) else r for r in sample["filtered_resps"]]
        best = max(range(len(likelihoods)), key=lambda i: float(likelihoods[i]))
        ranked[sample["doc"]["id"]] = sample["doc"]["choices"][best]
    return ranked, result["results"]["skein_choices"]


def decide(url, docs, spellings):
    answers = {}
    for doc in docs:
        item = json.loads(doc["item"])
        body = {"input": item["input"], "questions": [item["question"]], "reading": "words", "prompt": "question",
                "spellings": spellings}
        answer = httpx.post(url + "/v1/decisions", json=body, timeout=60).raise_for_status().json()["answers"][0]
        answers[doc["id"]] = answer["choice"]
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model_dir", type=pathlib.Path)
    parser.add_argument("--items", type=pathlib.Path, default=ROOT / "bench/quality/items.jsonl")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    docs = documents(args.items)
    with SkeinServer(args.model_dir) as server:
        ranked, results = rank_by_lm_eval(server.url, args.model_dir, docs)
        report = {"documents": len(docs), "lm_eval": {k: v for k, v in results.items() if k.startswith("acc")}}
        for spellings in ("exact", "all"):
            answers = decide(server.url, docs, spellings)
            same = [answers[d["id"]] == ranked[d["id"]] for d in docs]
            report[spellings] = {"same_choice": sum(same),
                                 "accuracy": sum(answers[d["id"]] == d["gold"] for d in docs) / len(docs),
                                 "different": [d["id"] for d, s in zip(docs, same) if not s]}
    print(json.dumps(report, indent=2))
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if report["exact"]["same_choice"] == len(docs) else 1


if __name__ == "__main__":
    sys.exit(main())
