#!/usr/bin/env python3
"""Makes labelled items for `skein bench quality` of the texts that VADER was rated on (Hutto and Gilbert 2014).

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python3 tools/vader_items.py vaderSentiment-3.3.2.tar.gz amazon items.jsonl
    skein bench quality MODEL --data items.jsonl

SOURCE is the package's archive of sources, its unpacked directory, or hutto_ICWSM_2014.tar.gz itself. Each text has the mean of
twenty people's ratings, from -4 to 4. A text is taken if its rating is at least --min-rating away from 0; the label is its sign.
As many of each sign are taken, at most --limit together, drawn by --seed; with --unbalanced all. The texts are not part of this repository.
"""
import argparse
import io
import json
import pathlib
import random
import tarfile

FILES = {
    "amazon": "amazonReviewSnippets_GroundTruth.txt",
    "movie": "movieReviewSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
    "nyt": "nytEditorialSnippets_GroundTruth.txt",
}
INNER = "hutto_ICWSM_2014.tar.gz"


def member(archive, name):
    """The bytes of the archive's file of this name, wherever it lies."""
    for info in archive.getmembers():
        if info.isfile() and pathlib.PurePosixPath(info.name).name == name:
            return archive.extractfile(info).read()
    raise SystemExit(f"there is no {name} in the archive")


def ground_truth(source, name):
    """The text of a file of ratings; bytes that are not UTF-8 become U+FFFD."""
    if source.is_dir():
        found = sorted(source.rglob(INNER))
        if not found:
            raise SystemExit(f"{source}: there is no {INNER} below it")
        source = found[0]
    if not source.is_file():
        raise SystemExit(f"{source}: there is no such file")
    with tarfile.open(source) as archive:
        if source.name == INNER:
            return member(archive, name).decode("utf-8", "replace")
        inner = member(archive, INNER)
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        return member(archive, name).decode("utf-8", "replace")


def rated(text, min_rating):
    """(id, rating, text) of each line whose rating is clear."""
    found = []
    for line in text.split("\n"):
        fields = line.strip("\r").split("\t", 2)
        if len(fields) == 3 and fields[2].strip() and abs(float(fields[1])) >= max(min_rating, 1e-9):
            found.append((fields[0].strip(), float(fields[1]), fields[2].strip()))
    return found


def balanced(rows, limit, seed):
    """As many of each sign, drawn by the seed, in the file's order."""
    draw = random.Random(seed)
    signs = [[row for row in rows if row[1] > 0], [row for row in rows if row[1] < 0]]
    count = min(len(sign) for sign in signs)
    if limit:
        count = min(count, limit // 2)
    kept = {row for sign in signs for row in draw.sample(sign, count)}
    return [row for row in rows if row in kept]


def item(row, name, question, reverse):
    identity, rating, text = row
    positive = rating > 0
    values = [{"value": "positive"}, {"value": "negative"}]
    asked = {"type": "choice", "instructions": "What is the sentiment of the text?", "choices": values[::-1] if reverse else values}
    answer = "positive" if positive else "negative"
    if question == "predicate":
        asked = {"type": "predicate", "instructions": "Is the text positive?"}
        answer = positive
    return {"id": f"{name}-{identity}", "task": f"vader-{name}", "input": text, "question": asked, "answer": answer, "rating": rating}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="SOURCE")
    parser.add_argument("set", choices=sorted(FILES), metavar="SET", help=", ".join(sorted(FILES)))
    parser.add_argument("output", type=pathlib.Path, metavar="OUTPUT")
    parser.add_argument("--min-rating", type=float, default=1.0)
    parser.add_argument("--question", choices=("choice", "predicate"), default="choice")
    parser.add_argument("--limit", type=int, default=0, help="0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unbalanced", action="store_true", help="take all, whatever their signs")
    arguments = parser.parse_args()
    rows = rated(ground_truth(arguments.source, FILES[arguments.set]), arguments.min_rating)
    if not arguments.unbalanced:
        rows = balanced(rows, arguments.limit, arguments.seed)
    with open(arguments.output, "w", encoding="utf-8") as out:
        for place, row in enumerate(rows):
            line = item(row, arguments.set, arguments.question, reverse=place % 2 == 1)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(rows)} items, {sum(row[1] > 0 for row in rows)} of them positive: {arguments.output}")


if __name__ == "__main__":
    main()
