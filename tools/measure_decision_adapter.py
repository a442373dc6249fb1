#!/usr/bin/env python3
"""Measures models/smollm2-decide beside its base model and prints the tables of its card.

    python3 tools/measure_decision_adapter.py models/smollm2-decide --part all   # or one part

Run tools/train_decision_adapter.py before: it fetches what is needed. The parts: "valid" held-out texts of
the training sets, "amazon" VADER's Amazon set, "items" bench/quality/items.jsonl, "chat" replies of the base.
An option's score is the sum of its tokens' log-probabilities.
"""
import argparse
import collections
import json
import pathlib
import time

import torch
from torch.nn import functional as F

import decision_adapter_data as data
from default_model_data import Question
from decision_adapter_net import Adapter, Net
from train_decision_adapter import chat_replies, load_tokenizer, padded, plain

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Reader:
    """Scores options behind prompts with one model: `matrices` of an adapter, or None for the base."""

    def __init__(self, net, tokenizer, matrices):
        self.net, self.tokenizer, self.matrices = net, tokenizer, matrices

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    @torch.no_grad()
    def scores(self, asked, tokens_max=1600):
        """asked: [(prompt, options)]; a list of scores for each. Options of one token share a row."""
        found = [[0.0] * len(options) for _, options in asked]
        work = []  # (ids, number of ids of the prompt, question, [(option, its ids)])
        for n, (prompt, options) in enumerate(asked):
            head = self.ids(prompt)
            tails = [(i, self.ids(o)) for i, o in enumerate(options)]
            single = [(i, tail) for i, tail in tails if len(tail) == 1]
            work += [(head, len(head), n, single)] if single else []
            work += [(head + tail[:-1], len(head), n, [(i, tail)]) for i, tail in tails if len(tail) > 1]
        work.sort(key=lambda item: len(item[0]))
        while work:
            rows = max(1, tokens_max // len(work[-1][0]))
            part, work = work[-rows:], work[:-rows]
            self.batch(part, found)
        return found

    def batch(self, part, found):
        ids, _, _ = padded([plain(item[0], []) for item in part])
        wanted = torch.zeros_like(ids, dtype=torch.bool)
        for row, (own, head, _, _) in enumerate(part):
            wanted[row, head - 1:len(own)] = True
        logs = F.log_softmax(self.net.logits(ids, wanted, self.matrices), -1)
        start = 0
        for own, head, n, tails in part:
            for i, tail in tails:
                found[n][i] = sum(logs[start + k, token].item() for k, token in enumerate(tail))
            start += len(own) - head + 1

    @torch.no_grad()
    def shared(self, subjects, tokens_max=3000):
        """subjects: a list of (text, questions with options of one token); scores[text][question][option].

        The questions of a text share its tokens; each is read as if it stood alone.
        """
        work = []
        for n, (text, questions) in enumerate(subjects):
            ids = self.ids(data.words_head(text, questions[0]))
            row, segments, ends = list(ids), [0] * len(ids), []
            for number, question in enumerate(questions, 1):
                own = self.ids(data.words_tail(question))
                row, segments = row + own, segments + [number] * len(own)
                options = [self.ids(" " + data.answer_text(o)) for o in question.options]
                ends.append((len(row) - 1, [option[0] for option in options]))
            work.append((n, row, segments, ends))
        work.sort(key=lambda item: len(item[1]))
        found = [None] * len(subjects)
        while work:
            rows = max(1, tokens_max // len(work[-1][1]))
            part, work = work[-rows:], work[:-rows]
            ids, _, segments = padded([(row, [0.0] * len(row), segment) for _, row, segment, _ in part])
            wanted = torch.zeros_like(ids, dtype=torch.bool)
            for i, (_, _, _, ends) in enumerate(part):
                wanted[i, [end for end, _ in ends]] = True
            logits = iter(self.net.logits(ids, wanted, self.matrices, segments))
            for n, _, _, ends in part:
                found[n] = [next(logits)[tokens].tolist() for _, tokens in ends]
        return found

    def read(self, pairs, form="words"):
        """pairs: [(subject, question)]; the scores of each question's options."""
        if form == "letters":
            return self.scores([(data.letters_head(s, q) + data.letters_tail(q), q.labels) for s, q in pairs])
        return self.scores([(data.words_head(s, q) + data.words_tail(q),
                             [" " + data.answer_text(o) for o in q.options]) for s, q in pairs])


def best(scores):
    return max(range(len(scores)), key=scores.__getitem__)


def auc(scores, truths):
    """The share of (true, false) pairs in the right order; a tie counts half."""
    order = sorted(zip(scores, truths))
    total, below, start = 0.0, 0, 0
    while start < len(order):
        end = start
        while end < len(order) and order[end][0] == order[start][0]:
            end += 1
        true = sum(t for _, t in order[start:end])
        false = end - start - true
        total += true * (below + false / 2)
        below += false
        start = end
    return total / (below * (len(order) - below))


def share(flags):
    flags = list(flags)
    return f"{sum(flags) / max(1, len(flags)):.3f}"


def table(head, rows):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


# -- the parts -------------------------------------------------------------------------------------
def measure_valid(readers, args):
    maker = data.Maker("valid", 3, args.work / "vaderSentiment-3.3.2")
    rows, asked = [], []
    while len(rows) < args.rows:
        row = maker.row()
        tail = maker.any(row.tails)
        rows.append(tail)
        asked.append((row.head + tail.text, tail.question.labels if tail.form == "letters" else
                      [" " + data.answer_text(o) for o in tail.question.options]))
    right = [[best(s) == r.question.answer for s, r in zip(reader.scores(asked), rows)] for reader in readers]
    groups = collections.defaultdict(list)
    for i, row in enumerate(rows):
        groups[row.question.task].append(i)
    for i, row in enumerate(rows):
        groups[f"form: {row.form}"].append(i)
    table(["task", "questions", "by chance", "base", "adapter"],
          [[name, len(own), f"{sum(1 / len(rows[i].question.options) for i in own) / len(own):.2f}"]
           + [share(r[i] for i in own) for r in right] for name, own in sorted(groups.items())])


def sentiment_asks(texts):
    """Four readings of each text: choice in both orders, predicates of both polarities."""
    wording = "What is the sentiment of the text?"
    both = [("positive", ""), ("negative", "")]
    yes_no = [("yes", ""), ("no", "")]
    return {"choice": [(t, Question("", "choice", wording, both, 0)) for t in texts],
            "swapped": [(t, Question("", "choice", wording, both[::-1], 0)) for t in texts],
            "positive?": [(t, Question("", "predicate", "Is the text positive?", yes_no, 0)) for t in texts],
            "unhappy?": [(t, Question("", "predicate", "Is the writer unhappy?", yes_no, 0)) for t in texts]}


def measure_ratings(label, reader, texts):
    """texts: [(text, rating)]; positive from a rating above 0. Rows of the table."""
    truths = [int(score > 0) for _, score in texts]
    asks = sentiment_asks([t for t, _ in texts])
    found = reader.shared([(text, [asks[way][n][1] for way in asks]) for n, (text, _) in enumerate(texts)])
    margins = {way: [(1 if way in ("choice", "positive?") else -1) * (own[k][0] - own[k][1]) for own in found]
               for k, way in enumerate(asks)}
    strong = [n for n, (_, score) in enumerate(texts) if abs(score) >= 1]
    rows = []
    for name, kept in (("all", range(len(texts))), ("at least 1", strong)):
        truth = [truths[n] for n in kept]
        counts = f"{len(truth)}, {sum(truth)} positive"
        for way, all_margins in margins.items():
            own = [all_margins[n] for n in kept]
            right = [(m > 0) == t for m, t in zip(own, truth)]
            balanced = sum(sum(r for r, t in zip(right, truth) if t == side) / truth.count(side)
                           for side in (0, 1)) / 2
            rows.append([label, name, counts, way, share(right), f"{balanced:.3f}", f"{auc(own, truth):.3f}"])
        flips = [(margins["choice"][n] > 0) != (margins["swapped"][n] > 0) for n in kept]
        rows.append([label, name, counts, "flips when swapped", share(flips), "", ""])
    return rows


def measure_amazon(readers, args):
    texts = [t for t in data.rated(args.work / "vaderSentiment-3.3.2", args.set) if t[1] != 0]
    if args.set != "amazonReviewSnippets":  # a training set: only its validation texts
        texts = [t for t in texts if data.split_of(t[0]) == "valid"]
    some = texts[::max(1, len(texts) // args.base_rows)]
    rows = measure_ratings("adapter", readers[1], texts)
    rows += measure_ratings("base", readers[0], some) if args.base_rows else []
    table(["model", "abs. rating", "texts", "question", "accuracy", "balanced accuracy", "AUC"], rows)


def item_question(item):
    question = item["question"]
    kind = question["type"]
    if kind == "predicate":
        return Question(item["task"], kind, question["instructions"], [("yes", ""), ("no", "")],
                        0 if item["answer"] else 1)
    entries = question["choices" if kind == "choice" else "levels"]
    options = [(str(e.get("value", e.get("label", "")) or ""), e.get("description") or "") for e in entries]
    answer = item["answer"] if kind == "score" else [o[0] for o in options].index(str(item["answer"]))
    return Question(item["task"], kind, question["instructions"], options, answer)


def measure_items(readers, args):
    items = [json.loads(line) for line in args.items.open(encoding="utf-8")]
    plain = [i for i in items if i["task"] != "relevance"]
    queries = [i for i in items if i["task"] == "relevance"]
    yes_no = [("yes", ""), ("no", "")]
    rows, columns = collections.OrderedDict(), []
    for label, reader in zip(("base", "adapter"), readers):
        for form in ("words", "letters"):
            columns.append(f"{label}, {form}")
            right = collections.defaultdict(list)
            asked = [(i["input"], item_question(i)) for i in plain]
            for scores, (_, question) in zip(reader.read(asked, form), asked):
                right[question.task].append(best(scores) == question.answer)
            pairs = [(i["query"], Question("", "relevance", d, yes_no, 0)) for i in queries
                     for d in i["documents"]]
            margins = iter([s[0] - s[1] for s in reader.read(pairs, form)])
            for item in queries:
                own = [next(margins) for _ in item["documents"]]
                right["relevance, best is relevant"].append(best(own) in item["answer"])
                right["relevance, yes or no"] += [(m > 0) == (n in item["answer"]) for n, m in enumerate(own)]
            for task, flags in right.items():
                rows.setdefault(task, [len(flags)]).append(share(flags))
            all_flags = [f for task, flags in right.items() if "yes or no" not in task for f in flags]
            rows.setdefault("all (without the line before)", [len(all_flags)]).append(share(all_flags))
    table(["task", "items"] + columns, [[task] + own for task, own in rows.items()])


def measure_chat(readers, args):
    """On replies of the base that training did not use."""
    replies = [r for i, r in enumerate(chat_replies(args.work, readers[0].tokenizer)) if i % 4 == 0]
    ids, weights, _ = padded([plain(p, r) for p, r in replies])
    wanted = weights > 0
    with torch.no_grad():
        base, own = (F.log_softmax(r.net.logits(ids, wanted, r.matrices), -1) for r in readers)
    targets = ids.roll(-1, 1)[wanted]
    same = (base.argmax(-1) == own.argmax(-1)).float().mean().item()
    divergence = F.kl_div(own, base, log_target=True, reduction="sum") / len(targets)
    print(f"chat: {len(replies)} replies, {len(targets)} tokens; KL {divergence:.4f}, "
          f"perplexity of the base's greedy replies: base {F.nll_loss(base, targets).exp():.3f}, "
          f"adapter {F.nll_loss(own, targets).exp():.3f}; same most likely token {same:.3f}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/decision_adapter"))
    parser.add_argument("--part", default="all", choices=["valid", "amazon", "items", "chat", "all"])
    parser.add_argument("--items", type=pathlib.Path, default=ROOT / "bench/quality/items.jsonl")
    parser.add_argument("--rows", type=int, default=800, help="questions of the validation part")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", default="amazonReviewSnippets", help="the set of the part amazon")
    parser.add_argument("--base-rows", type=int, default=400, help="amazon: texts for the base model")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    net, tokenizer = Net(torch.load(args.work / "base.pt")), load_tokenizer(args.work)
    with torch.no_grad():
        readers = [Reader(net, tokenizer, m) for m in (None, Adapter.load(args.out).rounded())]
    parts = {"valid": measure_valid, "chat": measure_chat, "items": measure_items, "amazon": measure_amazon}
    for name, part in parts.items():
        if args.part in (name, "all"):
            start = time.time()
            part(readers, args)
            print(f"({name}: {time.time() - start:.0f} s)")


if __name__ == "__main__":
    main()
