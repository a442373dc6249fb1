"""`skein tokenize` against the `tokenizers` package on random texts: ids, special ids, type ids, offsets,
pairs, truncation, decoded text.

    SKEIN_BIN=build/release/bin/skein pytest tests/test_text_reference.py

SKEIN_SEED repeats a run; SKEIN_ROUNDS is the number of texts for each tokenizer. tools/fuzz_tokenizers.py
does the same with millions.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from random_texts import added_tokens, encode_full, random_line, random_text  # noqa: E402

SHARED = pathlib.Path(os.environ.get("SKEIN_SHARED", ROOT / ".." / "shared"))
BINARY = os.environ.get("SKEIN_BIN", str(ROOT / "build" / "release" / "bin" / "skein"))
SEED = int(os.environ.get("SKEIN_SEED", random.SystemRandom().randrange(2**32)))
ROUNDS = int(os.environ.get("SKEIN_ROUNDS", 600))
FOLDERS = sorted(p.parent for p in [
    *SHARED.glob("tokenizers/*/tokenizer.json"), *SHARED.glob("models/*/tokenizer.json"),
    *ROOT.glob("tests/data/tokenizers/*/tokenizer.json")])

def skein(folder, lines, *options):
    run = subprocess.run([BINARY, "tokenize", str(folder), *options], text=True, encoding="utf-8",
                         input="".join(json.dumps(line) + "\n" for line in lines),
                         capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.split("\n")[:-1]]
    assert len(answers) == len(lines)
    return answers


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_random_texts(folder):
    print("SKEIN_SEED", SEED)
    rng = random.Random(f"{SEED} {folder.name}")
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    specials = added_tokens(folder)
    texts = [random_text(rng, specials) for _ in range(ROUNDS)]
    got = [skein(folder, [{"text": text} for text in texts], *options) for options in ([], ["--special"])]
    for text, plain, special in zip(texts, *got):
        assert plain["ids"] == reference.encode(text, add_special_tokens=False).ids, (SEED, text)
        assert special["ids"] == reference.encode(text).ids, (SEED, text)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_random_pairs(folder):
    """Pairs and single texts, cut and whole: ids, type ids and offsets."""
    print("SKEIN_SEED", SEED)
    rng = random.Random(f"{SEED} pairs {folder.name}")
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    specials = added_tokens(folder)
    lines = [random_line(rng, specials) for _ in range(ROUNDS // 2)]
    for special in (False, True):
        got = skein(folder, lines, "--full", *(["--special"] if special else []))
        for line, answer in zip(lines, got):
            if "error" in answer:
                answer["error"] = ""
            assert answer == encode_full(reference, line, special), (SEED, line, special)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_random_ids(folder):
    print("SKEIN_SEED", SEED)
    rng = random.Random(f"{SEED} ids {folder.name}")
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = reference.get_vocab_size(with_added_tokens=True)
    lists = [[rng.randrange(min(size, rng.choice([300, size]))) for _ in range(rng.randrange(30))]
             for _ in range(ROUNDS)]
    for ids, answer in zip(lists, skein(folder, [{"ids": ids} for ids in lists], "--decode")):
        assert answer["text"] == reference.decode(ids, skip_special_tokens=False), (SEED, ids)


def test_bad_line_is_named():
    run = subprocess.run([BINARY, "tokenize", str(FOLDERS[0])], text=True,
                         input='{"text": "a"}\n{"txt": 1}\n', capture_output=True, check=False)
    assert run.returncode == 1
    assert "line 2" in run.stderr
