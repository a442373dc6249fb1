"""Texts and questions from which the golden makers of decision models make their requests, and their helpers."""
import os
import random

WORDS = "the long way home was more than two hours by water and it rained all night over river town".split()


def text(seed, count):
    pick = random.Random(seed)
    return " ".join(pick.choice(WORDS) for _ in range(count)).capitalize() + "."


CHOICE = {"type": "choice", "instructions": "What does the writer want?",
          "criteria": {"refund": "money back", "repair": None, "advice": "a question about use"}}
SCORE = {"type": "score", "instructions": "How urgent is it?",
         "criteria": ["can wait", "this week", "today", "at once"]}
NOUL = {"type": "noul", "instructions": "The writer is angry."}
TOLD_NOUL = {"type": "noul", "instructions": "Is it about travel?",
             "criteria": {"true": "a trip, a road or a ship", "false": "anything else"}}
LETTER = "Where is the book? I was home by two and it rained all night. Give me back my money!"
STATE = {"name": "Ünïcode Straße", "amount": 12.50, "count": 3, "tiny": 1.5e-7, "large": 1e16, "whole": 2.0,
         "paid": True, "note": None, "tags": ["a", "b\n\"c\"", []], "more": {"x": {}, "дом": "東京 🚢"}}


def options(count, words):
    return {"%s %d" % (WORDS[i % len(WORDS)], i): (text(i, words) if words else None) for i in range(count)}


def bounds_of(option_ids):
    """Where options that are read side by side begin, and where the last one ends."""
    count = max(option_ids)
    begins = [option_ids.index(slot + 1) for slot in range(count)]
    return begins + [len(option_ids) - option_ids[::-1].index(count)]


def link_same_tokenizers(data):
    """Replaces each tokenizer.json of the models in `data` that another model has, too, by a link to that one."""
    first = {}
    for folder in ("laya", "sysone", "kev", "clef", "trained"):
        for path in sorted((data / folder).rglob("tokenizer.json")):
            if path.is_symlink():
                continue
            kept = first.setdefault(path.read_bytes(), path)
            if kept != path:
                path.unlink()
                path.symlink_to(os.path.relpath(kept, path.parent))
