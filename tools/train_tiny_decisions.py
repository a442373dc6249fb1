#!/usr/bin/env python3
"""Train tiny decision models with their own packages, and record what these answer afterwards.

    .venv-dev/bin/python tools/train_tiny_decisions.py [OUT_DIR]   (default: tests/data/trained)

Needs the packages `sysone` and `laya` beside torch and transformers. Takes a minute or two. Writes

    held-out.jsonl   40 labelled rows that no model saw
    sysone           ModernBERT of two layers, trained by `SystemOneModel.fit` from random weights
    sysone-lora      a Qwen3 of two layers whose adapters and head are trained
    laya             tests/data/laya, trained further by `laya.train`, its options side by side

each with golden.json: the package's probabilities and answers for the held-out rows, and its figures
of them. The texts are made by rules: words in random order, of which one says the answer.
"""
import argparse
import json
import pathlib
import random
import shutil
import tempfile
import warnings

import torch
import transformers
import sysone
from laya import agent as laya_agent
from laya import train as laya_train

from decision_requests import WORDS, link_same_tokenizers
from make_golden_laya import answer_alone
from make_golden_sysone import DATA, ENCODER_TOKENS, load, read, strip

SEED = 5
COLOURS = {"red": "rose", "green": "grass", "blue": "sky"}
AMOUNTS = ["few", "some", "many"]
QUESTIONS = {
    "colour": {"type": "choice", "instructions": "Which colour is named?",
               "criteria": {colour: "like " + thing for colour, thing in COLOURS.items()}},
    "amount": {"type": "score", "instructions": "How much is there?", "criteria": AMOUNTS},
    "wet": {"type": "noul", "instructions": "Did it rain?"},
}


def rows(count, seed):
    pick = random.Random(seed)
    result = []
    for _ in range(count):
        colour, amount, wet = pick.choice(list(COLOURS)), pick.randrange(3), pick.random() < 0.5
        words = [pick.choice([w for w in WORDS if w != "rained"]) for _ in range(pick.randrange(4, 12))]
        for word in (colour, AMOUNTS[amount], "rained" if wet else "dry"):
            words.insert(pick.randrange(len(words) + 1), word)
        result.append({"state": " ".join(words), "questions": QUESTIONS,
                       "expected": {"colour": colour, "amount": amount, "wet": wet}})
    return result


def base(folder, config, style, tokens):
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(DATA / "tokenizers" / style / "tokenizer.json"), **tokens)
    model = transformers.AutoModel.from_config(config(len(tokenizer)))
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def modernbert(vocab):
    return transformers.ModernBertConfig(
        vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=512, local_attention=32, global_attn_every_n_layers=2, pad_token_id=0,
        initializer_range=0.1)


def qwen3(vocab):
    return transformers.Qwen3Config(
        vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0,
        initializer_range=0.1)


def train_sysone(folder, config, style, tokens, training, held_out, **settings):
    folder.mkdir(parents=True)
    base(folder / "base", config, style, tokens)
    model = sysone.SystemOneModel(str(folder / "base"), device="cpu", verbose=0, seed=SEED, **settings)
    model.fit(training)
    model.save(folder, training_state=False)
    strip(folder)
    model = load(folder)
    answers = [read(model, row) for row in held_out]
    figures = model.evaluate(held_out)
    write(folder, answers, model.predict(held_out), figures)
    print(folder.name, {name: round(part["accuracy"], 3) for name, part in figures["by_question"].items()})


def train_laya(folder, training, held_out):
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "train.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in training))
        config = laya_train.TrainConfig(epochs=6, micro_batch=32, grad_accum=1, encoder_lr=1e-3, head_lr=1e-3,
                                        loss="soft-ce", option_layout="parallel", seed=SEED, log_every=0)
        laya_train.finetune(str(path), str(DATA / "laya"), str(folder), config, device="cpu")
    for extra in folder.iterdir():
        if extra.name not in ("encoder", "tokenizer", "model.safetensors", "rl_agent_config.json"):
            shutil.rmtree(extra) if extra.is_dir() else extra.unlink()
    agent = laya_agent.Agent(str(folder), device="cpu")
    answers = [answer_alone(agent, row) for row in held_out]
    write(folder, answers, None, None)
    right = sum(max(p) == p[list(COLOURS).index(row["expected"]["colour"])]
                for row, answer in zip(held_out, answers) for p in [answer["colour"]["probabilities"]])
    print(folder.name, "colour", right / len(held_out))


def write(folder, answers, predicted, figures):
    golden = {"questions": answers, "predicted": predicted, "figures": figures}
    (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=DATA / "trained")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    training, held_out = rows(400, 1), rows(40, 2)
    (out / "held-out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held_out))
    train_sysone(out / "sysone", modernbert, "modernbert-style", ENCODER_TOKENS, training, held_out,
                 tuning="full", train_embeddings=True, backbone_lr=2e-3, epochs=30, n_iter_no_change=30)
    train_sysone(out / "sysone-lora", qwen3, "o200k-style", dict(pad_token="<|endoftext|>", eos_token="<|endoftext|>"),
                 training, held_out, tuning="lora", num_layers="all", lora_layers="all", lora_targets="all",
                 backbone_lr=5e-3, epochs=30, n_iter_no_change=30)
    train_laya(out / "laya", training, held_out)
    if out == DATA / "trained":
        link_same_tokenizers(DATA)


if __name__ == "__main__":
    main()
