#!/usr/bin/env python3
"""Make a tiny random Laya model, and record what the reference encodes, computes and answers.

    .venv-dev/bin/python tools/make_golden_laya.py [OUT_DIR] [--parallel]   (default: tests/data/laya)

Needs the package `laya` beside torch, transformers, fastapi and httpx. Writes OUT_DIR in the layout
of `laya.train` (weights in float16) with golden.json. The tokenizer is
tests/data/tokenizers/modernbert-style. golden.json holds for each request

    body             as it is posted to /v1/systemone
    questions        by name: ids, markers, logits of the options, logits of the actions,
                     probabilities in the order of the options (a noul's: false, true)
    answer           what `laya serve` answers, without `model` and `routing`

A choice of more options than that server takes is answered by the package itself. Everything is
computed in float32, as that server does. No rounded value of an answer is near the edge of its
rounding, so that other sums in float32 give the same answer.
"""
import argparse
import itertools
import json
import math
import pathlib
import shutil
import warnings

import fastapi.testclient
import laya
import torch
import transformers
from laya import agent as laya_agent
from laya import common, serve, train
from laya.router import Router

from decision_requests import CHOICE, LETTER, NOUL, SCORE, STATE, TOLD_NOUL, bounds_of, options, text

SEED = 47
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SPECIAL = dict(cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]")
ENCODER = dict(vocab_size=960, hidden_size=64, intermediate_size=88, num_hidden_layers=3, num_attention_heads=1,
               max_position_embeddings=2048, local_attention=24, global_attn_every_n_layers=3, pad_token_id=0,
               hidden_activation="gelu", norm_eps=1e-5, global_rope_theta=160000.0, local_rope_theta=10000.0)
CONFIG = {"encoder": "tiny", "head_layers": 2, "act_costs": {"escalate": 0.2, "ask": 0.1}, "max_len": 256,
          "head_max_len": 96, "temperature": [1.3, 0.8, 2.0],
          "temperature_by_options": {"choice:11+": 0.1006, "score:3-5": 1.7, "choice:2": 9.5}}
# Wide enough that probabilities differ.
SCALE = 1.5
SERVED_OPTIONS = serve.MAX_CHOICE_OPTIONS

REQUESTS = [
    {"state": LETTER, "questions": {"want": CHOICE, "urgency": SCORE, "angry": NOUL, "travel": TOLD_NOUL}},
    {"state": "Где книга? 東京へ行きたい 🚢 — naïve café, ¿dónde está?\t“x” ﬁ Å", "questions": {
        "дом": {"type": "choice", "instructions": "Язык? 言語?", "criteria": {"русский": "да", "日本語": None, "🚢": "ship"}},
        "q2": {"type": "score", "instructions": "Wie süß?", "criteria": ["gar nicht", "etwas — mäßig", "très"]}}},
    {"state": "[SEP] x [CLS] [MASK] <|fim_prefix|> |||IP_ADDRESS||| [MA[MASK]SK] <|padding|>[MASK][SEP]", "questions": {
        "q": {"type": "choice", "instructions": "Is [MASK] here [SEP]?", "criteria": {"[MASK]": "[SEP] a", "b": "[MASK] c"}}}},
    {"state": STATE, "questions": {"want": CHOICE, "travel": TOLD_NOUL}},
    {"state": [{"role": "user", "text": text(i, 30)} for i in range(12)], "questions": {"urgency": SCORE, "angry": NOUL}},
    {"state": text(5, 600), "questions": {
        "want": CHOICE, "short": {"type": "noul", "instructions": "x"},
        "long": {"type": "choice", "instructions": text(6, 200), "criteria": options(4, 60)}}},
    {"state": LETTER, "questions": {"many": {"type": "choice", "instructions": "Which?", "criteria": options(40, 9)},
                                    "few": {"type": "choice", "instructions": "Which?", "criteria": options(2, 3)}}},
    {"state": "It rained.", "questions": {
        "q%d" % i: {"type": ("noul", "score", "choice")[i % 3], "instructions": text(100 + i, 4),
                    **({} if i % 3 == 0 else {"criteria": ["low", "high"] if i % 3 == 1 else options(2 + i % 5, 1)})}
        for i in range(64)}},
    {"state": text(9, 300), "max_len": 1024, "questions": {
        "hundred": {"type": "choice", "instructions": "Which one?", "criteria": options(100, 2)}}},
    {"state": text(10, 900), "max_len": 1400, "head_max_len": 300, "questions": {
        "most": {"type": "choice", "instructions": "Which one?", "criteria": options(255, 2)}}},
    {"state": text(11, 90), "max_len": 64, "head_max_len": 48, "questions": {"want": CHOICE, "urgency": SCORE}},
    {"state": text(12, 700), "max_len": 600, "head_max_len": 400, "questions": {
        "long": {"type": "choice", "instructions": text(13, 100), "criteria": options(6, 60)}}},
    {"state": LETTER, "questions": {"only": {"type": "choice", "instructions": "Which?", "criteria": {"one": None}},
                                    "level": {"type": "score", "instructions": "How?", "criteria": ["all"]}}},
    {"state": LETTER, "questions": {"names": {"type": "choice", "instructions": "Which?", "criteria": ["red", "green"]}}},
]


def randomize(model, generator):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name or name.startswith("scorer.0"):
                parameter.copy_(0.1 * noise + (1.0 if name.endswith("weight") else 0.0))
            elif parameter.dim() < 2:
                parameter.copy_(0.1 * noise)
            elif "emb" in name:
                parameter.copy_(noise)
            else:
                parameter.copy_(SCALE * noise / math.sqrt(parameter.shape[1]))
        model.scorer[3].weight.mul_(2)


def make_model(folder, seed):
    generator = torch.Generator().manual_seed(seed)
    encoder = transformers.AutoModel.from_config(transformers.ModernBertConfig(**ENCODER))
    model = common.DecisionModel(encoder, CONFIG["head_layers"], len(CONFIG["act_costs"]) + 1)
    randomize(model, generator)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(DATA / "tokenizers/modernbert-style/tokenizer.json"), **SPECIAL)
    train.save_checkpoint(model, tokenizer, CONFIG, str(folder))


def encode(agent, body):
    """The package's items of a request, and its questions."""
    questions = body["questions"]
    for name, question in questions.items():
        agent._check_question(name, question)
    internal = {name: agent._to_internal(question) for name, question in questions.items()}
    return agent._encode_state(body["state"], list(questions), internal, body.get("max_len"), body.get("head_max_len"))


def read(agent, body):
    questions = body["questions"]
    answers = {}
    for name, item in zip(questions, encode(agent, body)):
        # One at a time: a batch pads, which changes sums.
        batch = common.collate_items([[item]], agent.tok.pad_token_id)
        with torch.no_grad():
            logits, actions = agent._infer(batch)
        kind, count = common.QTYPES[questions[name]["type"]], len(item["markers"])
        scale = agent.temperature_by_options.get(common.temp_bucket(kind, count), agent.temperature[kind])
        logits = logits[0, :count].double()
        bounds = {"option_bounds": bounds_of(item["layout"]["option_ids"])} if "layout" in item else {}
        answers[name] = {**bounds, "ids": item["ids"], "markers": item["markers"], "logits": logits.tolist(),
                         "actions": actions[0].tolist(),
                         "probabilities": torch.softmax(logits / scale, -1).tolist()}
    return answers


def answer_alone(agent, body):
    """The package's reading of a request's questions, without its server."""
    return read(agent, {key: body[key] for key in ("state", "questions")})


def link_model(folder):
    """The same weights, with options side by side."""
    folder.mkdir(parents=True)
    for name in ("encoder", "tokenizer", "model.safetensors"):
        (folder / name).symlink_to(pathlib.Path("..") / "laya" / name)
    config = json.loads((DATA / "laya" / "rl_agent_config.json").read_text())
    (folder / "rl_agent_config.json").write_text(json.dumps({**config, "option_layout": "parallel"}) + "\n")


def answer(agent, client, body):
    if all(len(question.get("criteria") or ()) <= SERVED_OPTIONS for question in body["questions"].values()):
        response = client.post("/v1/systemone", json={**body, "model": "tiny"})
        assert response.status_code == 200, response.text
        result = response.json()
    else:
        budgets = {key: body[key] for key in ("max_len", "head_max_len") if key in body}
        result = serve._add_jev_confidence(agent.system_one(body["state"], body["questions"], **budgets))
    return {key: value for key, value in result.items() if key not in ("model", "routing")}


def rounds_clearly(questions):
    """Whether no probability's fourth decimal hangs on the last bits of a sum."""
    return all(abs(p * 1e4 % 1 - 0.5) > 0.004 * p + 1e-4
               for question in questions.values() for p in question["probabilities"])


def has_winners(questions):
    """Whether no two options share the first place: side by side, options of equal tokens have equal states."""
    firsts = [sorted(question["probabilities"])[-2:] for question in questions.values()]
    return all(len(first) < 2 or first[1] - first[0] > 1e-4 for first in firsts)


def write(out, agent, requests, reads, seed):
    client = fastapi.testclient.TestClient(serve.create_app(Router(models={"tiny": str(out)}, device="cpu")))
    rows = [{"body": body, "questions": questions, "answer": answer(agent, client, body)}
            for body, questions in zip(requests, reads)]
    golden = {"laya": laya.__version__, "torch": torch.__version__, "transformers": transformers.__version__,
              "seed": seed, "rows": rows}
    (out / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
    for row in rows:
        print({name: len(q["ids"]) for name, q in list(row["questions"].items())[:3]}, row["answer"]["usage"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--parallel", action="store_true",
                        help="the weights of tests/data/laya, with options side by side (default: tests/data/laya-parallel)")
    args = parser.parse_args()
    out = args.out or DATA / ("laya-parallel" if args.parallel else "laya")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    for seed in itertools.count(SEED):
        shutil.rmtree(out, ignore_errors=True)
        link_model(out) if args.parallel else make_model(out, seed)
        agent = laya_agent.Agent(str(out), device="cpu")
        pairs = [(body, read(agent, body)) for body in REQUESTS]
        if args.parallel:  # the weights are given: some requests must go
            pairs = [(body, questions) for body, questions in pairs
                     if rounds_clearly(questions) and has_winners(questions)]
        if all(rounds_clearly(questions) for _, questions in pairs):
            break
    write(out, agent, [body for body, _ in pairs], [questions for _, questions in pairs], seed)


if __name__ == "__main__":
    main()
