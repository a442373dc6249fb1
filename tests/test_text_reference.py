"""`skein tokenize` against the `tokenizers` package on random texts: ids, special ids, decoded text.

    SKEIN_BIN=build/release/bin/skein pytest tests/text_reference_test.py

SKEIN_SEED repeats a run; SKEIN_ROUNDS is the number of texts for each tokenizer.
"""
import json
import os
import pathlib
import random
import subprocess

import pytest
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("SKEIN_SHARED", ROOT / ".." / "shared"))
BINARY = os.environ.get("SKEIN_BIN", str(ROOT / "build" / "release" / "bin" / "skein"))
SEED = int(os.environ.get("SKEIN_SEED", random.SystemRandom().randrange(2**32)))
ROUNDS = int(os.environ.get("SKEIN_ROUNDS", 1500))
FOLDERS = sorted(p.parent for p in [
    *SHARED.glob("tokenizers/*/tokenizer.json"), *SHARED.glob("models/*/tokenizer.json"),
    *ROOT.glob("tests/data/tokenizers/*/tokenizer.json")])

SCRIPTS = [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF),
           (0x900, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x27BF),
           (0x2E80, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAFFF), (0xF900, 0xFFFD),
           (0x10000, 0x1FFFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF)]
SNIPPETS = ["def f(x):\n\treturn x**2  # no\n", "for (int i = 0; i < n; ++i) {\r\n", "it's we'LL I'd don\u2019t ",
            "'\u017f", "'S", "'Re", "1234567890", "\u00bd\u00b2", "\u0661\u0662\u0663", "   ", "\n\n\n", " \t ", "\r\n",
            "\u2581", " \u2581", "\u00a0", "\u3000", "\u200d", "\ufeff", "\u0000", "\ufffd", "<0x41>", "A\u030a", "\u1100\u1161\u11a8",
            "Hello world", "the quick brown fox", "a", "-----", "=" * 20, "!!!", "\u4f60\u597d", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]


def random_text(rng, specials):
    parts = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(9)
        if kind <= 2:
            low, high = rng.choice(SCRIPTS)
            parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 12))))
        elif kind <= 5:
            parts.append(rng.choice(SNIPPETS))
        elif kind == 6:
            parts.append("".join(
                chr(c) for c in (rng.randrange(0x110000) for _ in range(rng.randrange(1, 8)))
                if not 0xD800 <= c < 0xE000))
        elif kind == 7:
            parts.append(rng.choice(["a", " ", "\n", "9", "ab", "\u00e9", "\u5b57", "\u0301", "(", "x "])
                         * rng.randrange(1, 60))
        elif specials:
            special = rng.choice(specials)
            cut = rng.randrange(4)
            parts.append(special if cut < 2 else special[:-1] if cut == 2 else special[1:])
        if rng.randrange(3) == 0:
            parts.append(" " * rng.randrange(1, 4))
    return "".join(parts)


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
    added = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    texts = [random_text(rng, [token["content"] for token in added]) for _ in range(ROUNDS)]
    for special in (False, True):
        got = skein(folder, [{"text": text} for text in texts], *(["--special"] if special else []))
        for text, answer in zip(texts, got):
            want = reference.encode(text, add_special_tokens=special).ids
            assert answer["ids"] == want, (SEED, text)


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
