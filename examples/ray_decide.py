"""Answers questions about the rows of a data set on a Ray cluster, with a model in each worker:

    python examples/ray_decide.py INPUT OUTPUT --model smollm2 --workers 2

INPUT: JSON lines (or a folder of them) with a member `text`. OUTPUT: a folder of Parquet files, which keep every
bit of a number, as Ray's JSON does not. Each row gets the probability of yes for each question. A lost worker is replaced, and another computes its rows again: answers have the same bits
on every machine with one instruction set, so the output does not show it. A worker takes `--threads` processors;
reading and writing take one more on some of the machines.
"""
import argparse

import numpy
import ray
import skein

QUESTIONS = {"complains": "Does the writer complain?", "asks": "Does the writer ask for something?"}


class Decide:
    """A worker's model, loaded once."""

    def __init__(self, model: str, threads: int):
        self.llm = skein.LLM(model, threads=threads, max_model_len=2048)

    def __call__(self, batch: dict) -> dict:
        decisions = self.llm.decide([str(text) for text in batch["text"]], list(QUESTIONS.values()))
        for i, name in enumerate(QUESTIONS):
            batch[name] = numpy.array([of_row[i].probability for of_row in decisions])
        return batch


def decide(source: str, target: str, model: str, workers: int, threads: int = 1, batch_size: int = 32):
    rows = ray.data.read_json(source)
    rows = rows.repartition(max(workers, rows.count() // batch_size))
    rows.map_batches(Decide, fn_constructor_args=(model, threads), batch_size=batch_size, num_cpus=threads,
                     concurrency=workers).write_parquet(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    options = parser.parse_args()
    decide(options.input, options.output, options.model, options.workers, options.threads)
