#!/usr/bin/env python3
"""Compares `skein tokenize` with the `tokenizers` package on as many random texts as wanted.

    python3 tools/fuzz_tokenizers.py --texts 10000000 [--seed N] [--mixed] [--shared ../shared] [NAME...]

Goes round the tokenizers of tests/data/tokenizers and SHARED/tokenizers (all, or those named) in batches:
ids with and without special tokens, type ids, offsets, pairs, truncation, and the decoded text of the ids.
With --mixed every batch takes the model of one of them and draws normalizer, pre-tokenizer and
post-processor anew. Stops at the first difference, which it prints with all that is needed to repeat it.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from random_texts import added_tokens, encode_full, random_line
from tokenizers import Regex, Tokenizer, normalizers, processors
from tokenizers import pre_tokenizers as pre

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SKEIN_BIN", str(ROOT / "build" / "release" / "bin" / "skein"))
BATCH = 1000


def skein(folder, lines, *options):
    run = subprocess.run([BINARY, "tokenize", str(folder), *options], text=True, encoding="utf-8",
                         input="".join(json.dumps(line) + "\n" for line in lines),
                         capture_output=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{folder}: {run.stderr}")
    return [json.loads(line) for line in run.stdout.split("\n")[:-1]]


def random_normalizer(rng, charsmap):
    flag = lambda: rng.random() < 0.5
    makers = [
        normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase,
        normalizers.StripAccents, normalizers.Nmt, lambda: charsmap, lambda: charsmap,
        lambda: normalizers.BertNormalizer(flag(), flag(), rng.choice([None, True, False]), flag()),
        lambda: normalizers.Strip(flag(), flag()), lambda: normalizers.Prepend(rng.choice(["\u2581", "ab"])),
        lambda: normalizers.Replace(rng.choice([" ", "a", Regex("[aeiou]+"), Regex(r"\s{2,}")]),
                                    rng.choice(["", "\u2581", "xyz"]))]
    return normalizers.Sequence([rng.choice(makers)() for _ in range(rng.randrange(4))])


def random_pre_tokenizer(rng):
    flag = lambda: rng.random() < 0.5
    behavior = lambda: rng.choice(["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"])
    makers = [
        pre.Whitespace, pre.WhitespaceSplit, pre.BertPreTokenizer, lambda: pre.CharDelimiterSplit("a"),
        lambda: pre.FixedLength(rng.randrange(1, 9)), lambda: pre.Digits(flag()),
        lambda: pre.Punctuation(behavior()), lambda: pre.ByteLevel(flag(), use_regex=flag()),
        lambda: pre.Metaspace(prepend_scheme=rng.choice(["first", "always", "never"]), split=flag()),
        lambda: pre.Split(rng.choice([" ", Regex(r"\p{L}+"), Regex(r"\s+(?!\S)|\d{1,3}")]), behavior(), flag())]
    return pre.Sequence([rng.choice(makers)() for _ in range(rng.randrange(4))])


def random_post_processor(rng):
    flag = lambda: rng.random() < 0.5
    special = [("<a>", 1), ("<b>", 2)]
    trims = [processors.ByteLevel(trim_offsets=flag(), add_prefix_space=flag()) for _ in range(rng.randrange(2))]
    return processors.Sequence(trims + rng.choice([
        [], [processors.BertProcessing(*special)],
        [processors.RobertaProcessing(*special, trim_offsets=flag(), add_prefix_space=flag())],
        [processors.TemplateProcessing(single="<a>:1 $A:2 <b>", pair="<a> $B:3 <b>:4 $A <a>:5", special_tokens=special)],
    ]))


def mixed(rng, folder, charsmap, out):
    """Writes a tokenizer with the model and added tokens of `folder` and other parts to `out`."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = random_normalizer(rng, charsmap)
    tokenizer.pre_tokenizer = random_pre_tokenizer(rng)
    tokenizer.post_processor = random_post_processor(rng)
    tokenizer.save(str(out / "tokenizer.json"))
    return out


def compare(folder, rng, special):
    """Of one batch; returns what differs, or None."""
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = added_tokens(folder)
    lines = [random_line(rng, tokens) for _ in range(BATCH)]
    options = ["--special"] if special else []
    for line, answer in zip(lines, skein(folder, lines, "--full", *options)):
        if "error" in answer:
            answer["error"] = ""
        wanted = encode_full(reference, line, special)
        if answer != wanted:
            return line, wanted, answer
    reference.no_truncation()
    texts = [{"text": line["text"]} for line in lines]
    answers = skein(folder, texts, *options)
    for line, answer in zip(texts, answers):
        wanted = reference.encode(line["text"], add_special_tokens=special).ids
        if answer["ids"] != wanted:
            return line, wanted, answer
    if Tokenizer.from_file(str(folder / "tokenizer.json")).decoder is None:
        return None
    for answer, decoded in zip(answers, skein(folder, answers, "--decode")):
        wanted = reference.decode(answer["ids"], skip_special_tokens=False)
        if decoded["text"] != wanted:
            return answer, wanted, decoded
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--shared", default=str(ROOT / ".." / "shared"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    folders = sorted(p.parent for p in [
        *ROOT.glob("tests/data/tokenizers/*/tokenizer.json"),
        *([] if args.mixed else pathlib.Path(args.shared).glob("tokenizers/*/tokenizer.json"))])
    folders = [f for f in folders if not args.names or f.name in args.names]
    charsmap = Tokenizer.from_file(
        str(ROOT / "tests/data/tokenizers/xlm-roberta-style/tokenizer.json")).normalizer
    done, batch, begin = 0, 0, time.time()
    with tempfile.TemporaryDirectory() as scratch:
        while done < args.texts:
            rng = random.Random(f"{args.seed} {batch}")
            folder = folders[batch % len(folders)]
            if args.mixed:
                folder = mixed(rng, folder, charsmap, pathlib.Path(scratch))
            difference = compare(folder, rng, special=batch // len(folders) % 2 == 0)
            if difference is not None:
                state = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
                parts = {k: v for k, v in state.items() if k not in ("model", "added_tokens")}
                print(f"seed {args.seed} batch {batch} {folders[batch % len(folders)].name}")
                print(json.dumps(parts)[:3000] if args.mixed else "", *map(json.dumps, difference), sep="\n")
                sys.exit(1)
            done += BATCH
            batch += 1
            if batch % len(folders) == 0:
                print(f"{done} texts agree, {done / (time.time() - begin):.0f} a second", flush=True)
    print(f"seed {args.seed}: {done} texts over {len(folders)} tokenizers, all agree")


if __name__ == "__main__":
    main()
