#!/usr/bin/env python3
"""Trains the default model (models/default), measures it on held-out texts and writes its card.

    python3 tools/train_default_model.py models/default            # trains, measures, writes all files
    python3 tools/train_default_model.py models/default --measure  # measures what is there, writes the card

Needs torch, tokenizers, safetensors and numpy (tools/requirements-dev.txt). Texts come from
default_model_data.py; seeds are fixed. The last step fits the decision temperature on the
validation split; the numbers of the card are of the test split, with the stored bf16 weights.
"""
import argparse
import collections
import ctypes
import json
import math
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional as F

import default_model_data as data
import default_model_words as w
import pages
from default_model_card import card
from default_model_net import CONFIG, Net, Trainer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}")
SPLIT = (r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
VOCAB_SIZE = 4096


def train_tokenizer():
    maker = data.Maker("train", "tokenizer")
    texts = []
    for _ in range(6000):
        example = maker.example(2, warm_up=0.1)
        texts += [example.head] + [q.text for q in example.questions]
        texts += maker.chat()
    # Words are to be whole tokens, however rare they are.
    known = [word for group in [*w.WORDS.values(), *[t[2] for t in w.TOPICS.values()]] for word in group]
    texts += [f" {word}" for word in known + list(w.SUBJECTS) + ", ".join(w.SUBJECTS.values()).split(", ")
              for _ in range(40)]
    # Labels must be one token each, and the codes of options beyond Z too (up to the wire's 255).
    texts += ["yes", "no", "Yes", "No"] * 1000 + data.CODES[:255 - 26] * 200
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(t, special=not t.endswith("think>"), normalized=False)
                        for t in SPECIAL], show_progress=False))
    for label in data.LETTERS + data.CODES[:229] + ["yes", "no"] + list("0123456789"):
        assert len(tokenizer.encode("\n\n" + label).ids) == 2, label
    return tokenizer


class Encoder:
    """Token rows of examples: the shared head as segment 0, each question as a segment of its own."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.known = {}

    def ids(self, text):
        if text not in self.known:
            if len(self.known) > 100000:
                self.known.clear()
            self.known[text] = self.tokenizer.encode(text).ids
        return self.known[text]

    def row(self, example):
        """(ids, positions, segments, places of answers, answers, label ids per answer, length of the
        head, [(place of an option's end of line, its label's id if it is the answer, else 0)])."""
        head = self.ids(data.BEFORE) + self.tokenizer.encode(example.head).ids
        ids, positions, segments = list(head), list(range(len(head))), [0] * len(head)
        places, answers, labels, lines = [], [], [], []
        for number, question in enumerate(example.questions, 1):
            encoded = self.tokenizer.encode(question.text)
            own = encoded.ids + self.ids(data.AFTER)
            if question.labels[0] != "yes":
                ends = [i for i, (_, end) in enumerate(encoded.offsets) if question.text[end - 1] == "\n"]
                lines += [(len(ids) + end, self.ids(label)[0] if i == question.answer else 0)
                          for i, (end, label) in enumerate(zip(ends[1:], question.labels))]
            ids += own
            positions += range(len(head), len(head) + len(own))
            segments += [number] * len(own)
            places.append(len(ids) - 1)
            tokens = [self.ids(label)[0] for label in question.labels]
            answers.append(tokens[question.answer])
            labels.append(tokens)
        return ids, positions, segments, places, answers, labels, len(head), lines

    def chat_row(self, said, answer, thinking_off):
        head = self.ids(f"<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"
                        + (data.THINK if thinking_off else ""))
        ids = head + self.ids(answer + "<|im_end|>")
        places = list(range(len(head) - 1, len(ids) - 1))
        return (ids, list(range(len(ids))), [0] * len(ids), places, ids[len(head):],
                [None] * len(places), 0, [])


def batch_of(rows):
    length = max(len(row[0]) for row in rows)
    ids, positions = np.zeros((len(rows), length), int), np.zeros((len(rows), length), np.float32)
    segments = np.full((len(rows), length), -1)
    wanted = np.zeros((len(rows), length), bool)
    for i, row in enumerate(rows):
        n = len(row[0])
        ids[i, :n], positions[i, :n], segments[i, :n] = row[0], row[1], row[2]
        wanted[i, row[3]] = True
    return tuple(map(torch.from_numpy, (ids, positions, segments, wanted)))


def step_loss(net, encoder, maker, args, warm_up, with_chat):
    """(loss, [its three parts], places, [(task, right)]) of one batch of this process."""
    maker.options_max = 4 if warm_up > 0.3 else 8
    maker.long_texts = float(maker.chance(0.05))  # a batch has one kind of length
    texts = max(1, args.texts // 3) if maker.long_texts else args.texts
    examples = [maker.example(args.questions, warm_up) for _ in range(texts)]
    rows = [encoder.row(example) for example in examples]
    if with_chat:
        rows += [encoder.chat_row(*maker.chat(), maker.chance(0.5)) for _ in range(4)]
    ids, positions, segments, wanted = batch_of(rows)
    targets = torch.tensor([a for row in rows for a in row[4]])
    weights = torch.tensor([1.0 if label else 0.2 for row in rows for label in row[5]])
    head = torch.zeros_like(wanted)
    for i, row in enumerate(rows):
        head[i, 2:max(2, row[6] - 1)] = True
    lines = torch.zeros_like(wanted)
    for i, row in enumerate(rows):
        lines[i, [place for place, _ in row[7]]] = True
    both, options = net(ids, positions, segments, wanted | head, lines)
    both = both.float()
    flags = torch.tensor([flag for row in rows for _, flag in row[7]], dtype=torch.long)
    option_loss = F.cross_entropy(options.float(), flags, reduction="sum") / max(1, len(flags))
    is_answer = wanted[wanted | head]
    logits = both[is_answer]
    loss = (F.cross_entropy(logits, targets, reduction="none") * weights).sum() / weights.sum()
    head_loss = F.cross_entropy(both[~is_answer], ids.roll(-1, 1)[head])
    tasks = [q.task for example in examples for q in example.questions]
    return (loss + args.lm_weight * head_loss + 0.5 * option_loss,
            [loss.item(), head_loss.item(), option_loss.item()], ids.numel(),
            list(zip(tasks, logits.argmax(-1).eq(targets).tolist())))


def train(rank, args, net, tokenizer, meeting):
    """One of args.processes equal processes, one thread each: its own texts, the mean of all gradients.

    The loss is that of every question's answer, and two smaller ones: of the words of the head, which
    teaches what words go together; and at the end of every option's line, before the last layer: there
    the net must say the option's label if it is the answer, else <|endoftext|>. The last layer then has
    only to find that line. Without this, reading options takes many times as many steps.
    """
    torch.set_num_threads(1)
    # Large blocks stay with the process: fetching fresh pages for every tensor costs a fifth of the time.
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                         world_size=args.processes)

    maker, encoder = data.Maker("train", f"{args.seed}-{rank}"), Encoder(tokenizer)
    trainer = Trainer(net, args.rate)
    seen, right, tokens, start = collections.Counter(), collections.Counter(), 0, time.time()
    decay_from = args.steps - args.decay_steps
    step = 0
    while step < decay_from + args.decay_steps:
        warm_up = max(0.05, args.warm_up * (1 - step / args.warm_up_steps))
        loss, parts, places, results = step_loss(net, encoder, maker, args, warm_up, step % 4 == 0)
        loss.backward()
        late = (time.time() - start) * (1 + args.decay_steps / (step + 1)) > 60 * args.minutes
        fall = (decay_from + args.decay_steps - step) / args.decay_steps
        stop = trainer.step(min(1, (step + 1) / 30) * min(1, fall), args.processes, late)
        if stop and step < decay_from:
            decay_from = step + 1
        step += 1
        tokens += places * args.processes
        seen.update(task for task, _ in results)
        right.update(task for task, ok in results if ok)
        if rank == 0 and step % args.report == 0:
            seconds = time.time() - start
            print(f"step {step}/{decay_from + args.decay_steps} {seconds:.0f} s "
                  f"{tokens / seconds:.0f} tokens/s "
                  f"answer {parts[0]:.3f} head {parts[1]:.3f} options {parts[2]:.3f} | "
                  + " ".join(f"{t}={right[t] / seen[t]:.2f}" for t in sorted(seen)), flush=True)
            seen.clear(), right.clear()
    if rank == 0:
        write_model(args.out, net, tokenizer)
        write_json(args.out / "training.json", {
            "seconds": round(time.time() - start), "steps": step, "decay_steps": args.decay_steps,
            "texts": args.texts, "questions": args.questions, "processes": args.processes,
            "seed": args.seed, "torch": torch.__version__})
    torch.distributed.destroy_process_group()


@torch.no_grad()
def answers(net, encoder, maker, count, questions=4):
    """[(task, logits of the labels, answer)] of about `count` new questions."""
    found = []
    while len(found) < count:
        examples = [maker.example(questions) for _ in range(16)]
        rows = [encoder.row(e) for e in examples]
        logits = iter(net(*batch_of(rows)).float())
        for example, row in zip(examples, rows):
            for question, labels in zip(example.questions, row[5]):
                found.append((question.task, next(logits)[labels].double().numpy(), question.answer))
    return found


def softmax(z, temperature):
    e = np.exp((z - z.max()) / temperature)
    return e / e.sum()


def fit_temperature(found):
    """The temperature of least negative log-likelihood, by golden section on its logarithm."""
    def loss(log_t):
        return -np.mean([np.log(softmax(z, math.exp(log_t))[a] + 1e-300) for _, z, a in found])
    low, high, golden = math.log(0.2), math.log(10), (math.sqrt(5) - 1) / 2
    while high - low > 1e-3:
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return round(math.exp((low + high) / 2), 3)


def calibration_error(found, temperature, bins=15):
    """Expected calibration error: the gap of confidence and accuracy, over equal bins of confidence."""
    sure = np.array([softmax(z, temperature).max() for _, z, _ in found])
    right = np.array([z.argmax() == a for _, z, a in found])
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return sum(abs(sure[place == b].sum() - right[place == b].sum()) for b in range(bins)) / len(found)


@torch.no_grad()
def ranking(net, encoder, maker, queries=150, documents=8):
    """(mean nDCG, share of pairs in the right order) of relevance, queries with both kinds only."""
    gains, pairs = [], []
    while len(gains) < queries:
        example = maker.relevance(documents)
        relevant = np.array([q.answer == 0 for q in example.questions])
        if relevant.all() or not relevant.any():
            continue
        row = encoder.row(example)
        logits = net(*batch_of([row])).float()
        scores = np.array([(z[labels[0]] - z[labels[1]]).item() for z, labels in zip(logits, row[5])])
        discount = 1 / np.log2(np.arange(len(scores)) + 2)
        gains.append((relevant[np.argsort(-scores, kind="stable")] * discount).sum()
                     / (np.sort(relevant)[::-1] * discount).sum())
        pairs += (scores[relevant][:, None] > scores[~relevant]).ravel().tolist()
    return float(np.mean(gains)), float(np.mean(pairs))


def measure(net, encoder, count):
    net.eval()
    temperature = fit_temperature(answers(net, encoder, data.Maker("valid", 7), count // 2))
    found = answers(net, encoder, data.Maker("test", 7), count)
    tasks = {}
    for task in sorted({t for t, _, _ in found}):
        part = [f for f in found if f[0] == task]
        tasks[task] = {"questions": len(part),
                       "accuracy": float(np.mean([z.argmax() == a for _, z, a in part])),
                       "chance": float(np.mean([1 / len(z) for _, z, _ in part])),
                       "calibration_error": calibration_error(part, temperature)}
    scores = [(z, a) for t, z, a in found if t == "score"]
    gain, pairs = ranking(net, encoder, data.Maker("test", 8))
    return {"temperature": temperature, "tasks": tasks, "questions": len(found),
            "accuracy": float(np.mean([z.argmax() == a for _, z, a in found])),
            "ece": calibration_error(found, temperature), "ece_raw": calibration_error(found, 1.0),
            "score_error": float(np.mean([abs(softmax(z, temperature) @ np.arange(len(z)) - a)
                                          for z, a in scores])),
            "ndcg": gain, "pairs": pairs}


def write_model(out, net, tokenizer):
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    state = {"model." + n: p.detach().bfloat16().contiguous() for n, p in net.named_parameters()}
    save_file(state, str(out / "model.safetensors"), metadata={"format": "pt"})
    ids = {t: tokenizer.token_to_id(t) for t in SPECIAL}
    config = dict(CONFIG, vocab_size=tokenizer.get_vocab_size(), eos_token_id=ids["<|im_end|>"],
                  pad_token_id=ids["<|endoftext|>"])
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", {"do_sample": False, "eos_token_id": ids["<|im_end|>"],
                                                "pad_token_id": ids["<|endoftext|>"]})
    write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE,
        "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "bos_token": None,
        "add_bos_token": False, "model_max_length": CONFIG["max_position_embeddings"],
        "clean_up_tokenization_spaces": False})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def read_model(out):
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    config = json.loads((out / "config.json").read_text())
    net = Net(config)
    net.load_state_dict({n.removeprefix("model."): p.float()
                         for n, p in load_file(str(out / "model.safetensors")).items()})
    return net, tokenizer, config


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--measure", action="store_true", help="train nothing")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--decay-steps", type=int, default=200, help="the last ones, with a falling rate")
    parser.add_argument("--minutes", type=float, default=25,
                        help="begin the last steps earlier if all would take longer than this")
    parser.add_argument("--texts", type=int, default=8, help="texts of a step")
    parser.add_argument("--questions", type=int, default=5, help="questions of a text")
    parser.add_argument("--rate", type=float, default=3e-3, help="AdamW's learning rate")
    parser.add_argument("--lm-weight", type=float, default=0.1)
    parser.add_argument("--warm-up", type=float, default=0.8,
                        help="at first, the share of texts whose questions only read labels")
    parser.add_argument("--warm-up-steps", type=int, default=250, help="until that share is gone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2, help="of one thread each")
    parser.add_argument("--report", type=int, default=20)
    parser.add_argument("--count", type=int, default=6000, help="questions of the measurement")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    if not args.measure:
        tokenizer = train_tokenizer()
        print("tokenizer:", tokenizer.get_vocab_size(), flush=True)
        net = Net(dict(CONFIG, vocab_size=tokenizer.get_vocab_size()))
        print("parameters:", sum(p.numel() for p in net.parameters()), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(train, (args, net, tokenizer, folder + "/meeting"), args.processes)
    net, tokenizer, config = read_model(args.out)
    result = measure(net, Encoder(tokenizer), args.count)
    write_json(args.out / "measured.json", result)
    write_json(args.out / "config.json", dict(config, decision_temperature=result["temperature"]))
    training = json.loads((args.out / "training.json").read_text())
    pages.write(args.out / "README.md", card(result, training, config, args.out))
    print((args.out / "README.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
