#!/usr/bin/env python3
"""Make tiny random models of the package sysone, and record what it encodes, computes and answers.

    .venv-dev/bin/python tools/make_golden_sysone.py [OUT_DIR]   (default: tests/data/sysone)

Needs the package `sysone` beside torch, transformers, fastapi and httpx. Each folder of OUT_DIR is
what `SystemOneModel.save` writes, with its base model in the folder `base` and golden.json. The
package makes the model (one epoch over a few rows); then every weight that it trained, and the
temperatures, are replaced by random ones, so that each of them shows in the answers. The names of
the models say their base and their layout; the tokenizers are those of tests/data/tokenizers.

golden.json holds for each request

    body             as it is posted to /v1/systemone
    questions        by name: ids, markers, summary, option_bounds, logits of the options, the same
                     if nothing is rounded, probabilities in the order of the options (a noul's:
                     false, true), and slack
    answer           what `sysone serve` answers, without `id` and `model`

The package rounds the states that its head reads to bf16. An element near the edge of its rounding
falls to one side or the other with the order of a sum. `slack` is the largest change of a logit
that such elements cause: the sum over all elements within EDGE of an edge. Everything else is
computed in float32, one question at a time: a batch pads, which changes sums.
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import warnings

import fastapi.testclient
import torch
import transformers
import sysone
from sysone import base as sysone_base
from sysone import features, serve
from sysone.calibration import temperature
from sysone.questions import QUESTION_TYPES

from decision_requests import CHOICE, LETTER, NOUL, SCORE, STATE, TOLD_NOUL, bounds_of, link_same_tokenizers, options, text

SEED = 61
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
# Relative to the largest element of a state.
EDGE = 4e-6

ENCODER_TOKENS = dict(cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]")
SHAPE = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=2048)
DECODER = dict(SHAPE, intermediate_size=96, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True,
               pad_token_id=0, bos_token_id=1, eos_token_id=2)

MODELS = {
    "modernbert-parallel": dict(
        config=lambda vocab: transformers.ModernBertConfig(
            vocab_size=vocab, **dict(SHAPE, num_attention_heads=2), intermediate_size=88, local_attention=24,
            global_attn_every_n_layers=3, pad_token_id=0, global_rope_theta=160000.0, local_rope_theta=10000.0),
        tokenizer=("modernbert-style", ENCODER_TOKENS),
        fit=dict(tuning="lora", trainable_layers=1, lora_layers=1, lora_targets="all", head_dim=128, head_layers=1), full=True),
    "qwen3-parallel": dict(
        config=lambda vocab: transformers.Qwen3Config(vocab_size=vocab, **dict(DECODER, num_hidden_layers=4, max_position_embeddings=6144)),
        tokenizer=("o200k-style", dict(pad_token="<|endoftext|>", eos_token="<|endoftext|>")),
        fit=dict(tuning="lora", num_layers=3, lora_layers=2, max_len=5600), full=True),
    "gemma3-parallel": dict(
        config=lambda vocab: transformers.Gemma3TextConfig(
            vocab_size=vocab, **DECODER, sliding_window=40, query_pre_attn_scalar=16,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        tokenizer=("gemma-style", dict(bos_token="<bos>", eos_token="<eos>", pad_token="<pad>")),
        fit=dict(tuning="full", num_layers="all", trainable_layers=1, head_layers=1), full=False),
    "llama-sequential": dict(
        config=lambda vocab: transformers.LlamaConfig(vocab_size=vocab, **DECODER),
        tokenizer=("llama3-style", dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>")),
        fit=dict(tuning="head", num_layers="all", layout="sequential", head_layers=0), full=False),
    "eurobert-sequential": dict(
        config=lambda vocab: transformers.EuroBertConfig(vocab_size=vocab, **DECODER),
        tokenizer=("llama3-style", dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>",
                                        mask_token="<|eot_id|>", pad_token="<|end_of_text|>")),
        fit=dict(tuning="full", trainable_layers=1, layout="sequential", head_layers=1), full=False),
}
LIMITS = dict(max_state_tokens=700, max_option_tokens=12, max_len=2048)
TEMPERATURES = {"choice": 1.3, "score": 0.8, "noul": 2.0}
BY_OPTIONS = {"choice": {"11+": 0.6, "2": 4.5}, "score": {"3-5": 1.7}}

REQUESTS = [
    {"state": LETTER, "questions": {"want": CHOICE, "urgency": SCORE, "angry": NOUL, "travel": TOLD_NOUL}},
    {"state": "Где книга? 東京へ行きたい 🚢 — naïve café, ¿dónde está?\t“x” ﬁ Å", "questions": {
        "дом": {"type": "choice", "instructions": " Язык? 言語?\u3000\n", "criteria": {"русский": "да", "日本語": None, "🚢": "ship"}},
        "q2": {"type": "score", "instructions": "Wie süß?", "criteria": ["gar nicht", "etwas — mäßig", "très"]}}},
    {"state": "<option>x</option> [SEP] [CLS] [MASK] <|endoftext|> <|im_start|> <bos> The answer is:\n\n{label}", "questions": {
        "q": {"type": "choice", "instructions": "Is [MASK] here [SEP] {instructions}?",
              "criteria": {"</option>": "<option> a", "{description}": "[MASK] c", "b": ""}}}},
    {"state": STATE, "questions": {"want": CHOICE, "travel": TOLD_NOUL}},
    {"state": ["%s: %s" % (("user", "agent")[i % 2], text(i, 30)) for i in range(12)],
     "questions": {"urgency": SCORE, "angry": NOUL}},
    {"state": text(5, 900), "questions": {
        "want": CHOICE, "short": {"type": "noul", "instructions": "x"},
        "long": {"type": "choice", "instructions": text(6, 200), "criteria": options(4, 60)}}},
    {"state": "It rained.", "questions": {
        "q%d" % i: {"type": ("noul", "score", "choice")[i % 3], "instructions": text(100 + i, 4),
                    **({} if i % 3 == 0 else {"criteria": ["low", "high"] if i % 3 == 1 else options(2 + i % 5, 1)})}
        for i in range(64)}},
    {"state": text(10, 900), "questions": {
        "most": {"type": "choice", "instructions": "Which one?", "criteria": options(255, 0)}}},
    {"state": LETTER, "abstain": {"noul": 0.99, "want": {"threshold": 0.2}},
     "questions": {"want": CHOICE, "angry": NOUL, "urgency": SCORE}},
]
ROWS = [{"state": text(200 + i, 6), "expected": {"want": list(CHOICE["criteria"])[i % 3], "angry": bool(i % 2), "urgency": i % 4},
         "questions": {"want": CHOICE, "angry": NOUL, "urgency": SCORE}} for i in range(24)]


def randomize(module, generator, scale=1.5):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                one = "norm" in name and name.endswith("weight") and "Gemma" not in type(module).__name__
                parameter.copy_(0.1 * noise + (1.0 if one else 0.0))
            elif "emb" in name:
                parameter.copy_(noise)
            else:
                parameter.copy_(scale * noise / math.sqrt(parameter.shape[1]))


def make_base(folder, spec, generator):
    style, tokens = spec["tokenizer"]
    path = DATA / "tokenizers" / style / "tokenizer.json"
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), **tokens)
    model = transformers.AutoModel.from_config(spec["config"](len(tokenizer)))
    randomize(model, generator)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_model(folder, spec, generator):
    make_base(folder / "base", spec, generator)
    model = sysone.SystemOneModel(str(folder / "base"), device="cpu", epochs=1, verbose=0, **{**LIMITS, **spec["fit"]})
    model.fit(ROWS)
    with torch.no_grad():
        for name, parameter in model.backbone_.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(8 * parameter.shape[1]))
    randomize(model.head_, generator)
    with torch.no_grad():
        model.head_.summary_proj.weight.mul_(2)
    model.temperatures_, model.temperatures_by_options_ = TEMPERATURES, BY_OPTIONS
    model.save(folder, training_state=False)
    strip(folder)


def strip(folder):
    """Removes what tells of the machine that made the model, and what loading does not need."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["params"]["model_name"] = config["base_model"]["name"] = "base"
    config["history"], config["report"] = [], None
    path.write_text(json.dumps(config, indent=1) + "\n")
    for readme in folder.rglob("README.md"):
        readme.unlink()


def load(folder):
    model = sysone.SystemOneModel.load(folder, model_name=str(folder / "base"), device="cpu")
    extract = features.extract

    def one_by_one(arch, backbone, encoded, *args):
        return [extract(arch, backbone, [item], *args)[0] for item in encoded]

    sysone_base.extract = one_by_one
    return model


def near_edges(states):
    """Pairs of index and other rounding of the elements that lie near an edge of rounding to bf16."""
    rounded = states.to(torch.bfloat16).float()
    bits = states.view(torch.int32)
    below = (bits & -0x10000).view(torch.float32)
    above = ((bits & -0x10000) + 0x10000).view(torch.float32)
    edge = (below.double() + above.double()) / 2
    largest = states.abs().max(-1, keepdim=True).values.double()
    near = ((states.double() - edge).abs() < EDGE * largest).nonzero().tolist()
    return [(tuple(index), (above if rounded[tuple(index)] == below[tuple(index)] else below)[tuple(index)])
            for index in near]


def states_of(model, encoded):
    """The states that the head reads, of the options and the summary, before they are rounded."""
    batch = sysone.layout.collate([encoded], model.tokenizer_.pad_token_id)
    with torch.no_grad():
        options_read, summary = features.read_vectors(model.architecture_.hidden_states(model.backbone_, batch), batch)
    return torch.cat([options_read[0], summary])


def slack_of(model, encoded, type_index, logits):
    states = states_of(model, encoded)
    rounded = states.to(torch.bfloat16).float()
    total = 0.0
    for index, other in near_edges(states):
        changed = rounded.clone()
        changed[index] = other
        total += (head(model, changed, type_index) - logits).abs().max().item()
    return total


def head(model, states, type_index):
    mask = torch.ones(1, states.shape[0] - 1, dtype=torch.bool)
    with torch.no_grad():
        return model.head_(states[None, :-1], mask, states[None, -1], torch.tensor([type_index]))[0]


def read(model, body):
    result = {}
    for name, definition in body["questions"].items():
        question = sysone_base.examples_from([{**body, "questions": {name: definition}}], None, labeled=False)[0][0]
        encoded = model._encoder().encode(question.state, question.question)
        feature = sysone_base.extract(model.architecture_, model.backbone_, [encoded], model.tokenizer_.pad_token_id,
                                      model.device_, None)[0]
        type_index = question.question.type_index
        states = torch.cat([feature.options.float(), feature.summary.float()[None]])
        logits = head(model, states, type_index)
        count = len(encoded.read_positions)
        scale = temperature(model.temperatures_, model.temperatures_by_options_, QUESTION_TYPES[type_index], count)
        exact = head(model, states_of(model, encoded), type_index)
        result[name] = {
            "ids": encoded.input_ids, "markers": encoded.read_positions, "summary": encoded.summary_position,
            "option_bounds": bounds_of(encoded.option_ids) if max(encoded.option_ids) else [], "logits": logits.tolist(),
            "unrounded_logits": exact.tolist(),
            "probabilities": torch.softmax(logits.double() / scale, -1).tolist(),
            "slack": slack_of(model, encoded, type_index, logits)}
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=DATA / "sysone")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    for number, (name, spec) in enumerate(MODELS.items()):
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        torch.manual_seed(SEED + number)
        random.seed(SEED + number)
        make_model(folder, spec, torch.Generator().manual_seed(SEED + number))
        model = load(folder)
        client = fastapi.testclient.TestClient(serve.create_app(model, name=name))
        rows = []
        for body in REQUESTS if spec["full"] else REQUESTS[:4]:
            response = client.post("/v1/systemone", json=body)
            assert response.status_code == 200, response.text
            answer = {key: value for key, value in response.json().items() if key not in ("id", "model")}
            rows.append({"body": body, "questions": read(model, body), "answer": answer})
        golden = {"sysone": sysone.__version__, "torch": torch.__version__,
                  "transformers": transformers.__version__, "rows": rows}
        (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
        questions = [q for row in rows for q in row["questions"].values()]
        print(name, len(questions), "questions; longest", max(len(q["ids"]) for q in questions), "tokens; with slack:",
              sum(q["slack"] > 0 for q in questions), "largest", max(q["slack"] for q in questions))
    if out == DATA / "sysone":
        link_same_tokenizers(DATA)


if __name__ == "__main__":
    main()
