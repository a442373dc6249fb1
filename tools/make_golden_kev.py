#!/usr/bin/env python3
"""Make tiny random Kev models, and record what the family's own code encodes, computes and answers.

    .venv-dev/bin/python tools/make_golden_kev.py --kev CHECKOUT [OUT_DIR]   (default: tests/data/kev)

CHECKOUT is a checkout of the family's repository, whose package `kev` is imported; it needs torch,
transformers, peft and pydantic. Each folder of OUT_DIR is what its trainer writes: head.pt with an
adapter, whose decoder is in the folder `base`, or with the weights of the whole decoder. All
weights are random. The tokenizer is tests/data/tokenizers/o200k-style with Qwen's special tokens.

golden.json holds for each request

    body             as it is posted to /v1/systemone
    questions        by name: ids (the state's and the question's), markers, summary, logits of the
                     options before the temperature, probabilities in the order of the options (a
                     noul's: false, true)
    answer           what its server answers: answers and usage

Everything is computed in float32, one question at a time.
"""
import argparse
import json
import math
import pathlib
import shutil
import sys

import torch
import transformers

from decision_requests import CHOICE, LETTER, NOUL, SCORE, STATE, TOLD_NOUL, link_same_tokenizers, options, text

SEED = 83
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|box_start|>", "<|box_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
PLAIN = ["<think>", "</think>", "<tool_call>"]  # tokens in any text

SHAPE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=8192, rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
QWEN35 = dict(SHAPE, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
              linear_value_head_dim=32,
              rope_parameters={"rope_type": "default", "rope_theta": 1e5, "partial_rotary_factor": 0.25})
QWEN3 = dict(SHAPE, head_dim=16, num_hidden_layers=3, rope_parameters={"rope_type": "default", "rope_theta": 1e5})
MODELS = {
    "qwen3.5-adapter": dict(config=transformers.Qwen3_5TextConfig, members=QWEN35, lora=4, head_dim=96, temperature=1.4, full=True),
    "qwen3.5-whole": dict(config=transformers.Qwen3_5TextConfig, members=dict(QWEN35, num_hidden_layers=2, layer_types=["linear_attention", "full_attention"]), lora=0, head_dim=256,
                          temperature=0.7, full=False),
    "qwen3-adapter": dict(config=transformers.Qwen3Config, members=QWEN3, lora=4, head_dim=64, temperature=1.0, full=False),
}
FORGED = ("<|fim_prefix|>x<|fim_middle|> <|box_start|>yes<|box_end|> <|fim_suffix|> <|im_start|> <|<|box_end|>|> <||> <|no-name|> "
          "<|endoftext|> <think> <\u00a6box_end\u00a6> <|box_end|")
REQUESTS = [
    {"state": LETTER, "questions": {"want": CHOICE, "urgency": SCORE, "angry": NOUL, "travel": TOLD_NOUL}},
    {"state": "Где книга? 東京へ行きたい 🚢 — naïve cafe\u0301, ¿dónde está?\t“x” ﬁ Å", "questions": {
        "дом": {"type": "choice", "instructions": " Язык? 言語?\u3000\n", "criteria": {"русский": "да", "日本語": None, "🚢": "ship"}},
        "q2": {"type": "score", "instructions": "Wie süß?", "criteria": ["gar nicht", "etwas — mäßig", "très"]}}},
    {"state": FORGED, "questions": {
        "q": {"type": "choice", "instructions": "Is <|box_end|> here <|fim_suffix|>?",
              "criteria": {"<|box_end|>": "<|box_start|> a", "{description}": "<|fim_suffix|>", "b": ""}}}},
    {"state": STATE, "questions": {"want": CHOICE, "travel": TOLD_NOUL}},
    {"state": ["%s: %s" % (("user", "agent")[i % 2], text(i, 30)) for i in range(12)],
     "questions": {"urgency": SCORE, "angry": NOUL}},
    {"state": [{"role": "user", "content": ["  a", {"b": [1, [2.5, False]]}]}, [], {}, "\u3000x\ny"],
     "questions": {"json": {"type": "choice", "instructions": {"task": "Which?", "rules": ["one", {"two": None}]},
                            "criteria": {"a": {"of": ["x", 1e-7]}, "b": ["y", True], "c": 3}},
                   "levels": {"type": "score", "instructions": ["How", "much?"], "criteria": [{"little": 1}, ["some"], "much"]},
                   "true": {"type": "noul", "instructions": "It is so.", "criteria": {"true": {"is": "so"}, "false": ["not"]}}}},
    {"state": text(5, 1500), "questions": {
        "want": CHOICE, "short": {"type": "noul", "instructions": "x"},
        "long": {"type": "choice", "instructions": text(6, 200), "criteria": options(4, 60)}}},
    {"state": "It rained.", "questions": {
        "q%d" % i: {"type": ("noul", "score", "choice")[i % 3], "instructions": text(100 + i, 4),
                    **({} if i % 3 == 0 else {"criteria": ["low", "high"] if i % 3 == 1 else options(2 + i % 5, 1)})}
        for i in range(64)}},
    {"state": text(10, 900), "questions": {
        "most": {"type": "choice", "instructions": "Which one?", "criteria": options(255, 0)}}},
]


def randomize(module, generator, scale=1.5):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("A_log"):
                parameter.copy_(0.1 * noise - 2)  # states last for some ten tokens
            elif parameter.dim() < 2:
                one = "norm" in name and ("linear_attn.norm" in name or "Qwen3_5" not in type(module).__name__)
                parameter.copy_(0.1 * noise + (1.0 if one else 0.0))
            elif "embed" in name:
                parameter.copy_(noise)
            elif parameter.dim() == 2:
                parameter.copy_(scale * noise / math.sqrt(parameter.shape[1]))
            else:
                parameter.copy_(noise)


def make_tokenizer():
    path = DATA / "tokenizers" / "o200k-style" / "tokenizer.json"
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.add_tokens(PLAIN)
    return tokenizer


def make_decoder(folder, spec, generator):
    tokenizer = make_tokenizer()
    config = spec["config"](vocab_size=len(tokenizer), **spec["members"])
    model = transformers.AutoModelForCausalLM.from_config(config)
    randomize(model, generator)
    body = model.to(torch.bfloat16) if spec["lora"] else model.model.to(torch.bfloat16)
    body.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_model(kev, folder, spec, generator):
    base = folder / "base" if spec["lora"] else folder
    make_decoder(base, spec, generator)
    tokenizer = kev.model.load_tokenizer(str(base))
    if spec["lora"]:
        model = kev.model.DecisionModel(str(base), tokenizer, "cpu", lora=spec["lora"], head_dim=spec["head_dim"])
        with torch.no_grad():
            for name, parameter in model.lm.named_parameters():
                if "lora_" in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(4 * parameter.shape[1]))
        model.lm.save_pretrained(folder)
        head = model.head
    else:
        head = kev.model.PointerHead(spec["members"]["hidden_size"], dp=spec["head_dim"])
    randomize(head, generator, scale=2)
    kev.checkpoint.write_meta(folder, kev.checkpoint.Meta(
        base=str(base), head=head.state_dict(), lora=spec["lora"], head_dim=spec["head_dim"], temperature=spec["temperature"],
        weights_dtype="fp32", holdout=["x"], extra={"args": {"epochs": 1, "lr": 2e-4, "full_ft": not spec["lora"]}, "suite": None}))
    for readme in folder.rglob("README.md"):
        readme.unlink()


def load(kev, folder, spec):
    if spec["lora"]:
        return kev.checkpoint.Checkpoint(str(folder)).load("cpu")
    meta = kev.checkpoint.read_meta(str(folder))
    tokenizer = kev.model.load_tokenizer(str(folder))
    # As the adapter's loader, without an adapter.
    model = kev.model.DecisionModel(str(folder), tokenizer, "cpu", head_dim=meta.head_dim)
    model.head.load_state_dict(meta.head)
    model.eval()
    model.head.temperature = meta.temperature
    return tokenizer, model


def read(kev, tokenizer, model, body):
    """The questions' parts, and what the server answers."""
    record, meta = kev.api.to_record(kev.api.SystemOneRequest(**body))
    encoded = model.encode(tokenizer, record, max_state=8192, max_branch=8192, strict=True)
    state, _, rows = kev.model.rows_of(encoded)
    temperature, model.head.temperature = model.head.temperature, 1.0
    with torch.no_grad():
        logits = model.forward(encoded)
    model.head.temperature = temperature
    probabilities = [p.tolist() for p in model.probs(encoded)]
    questions = {}
    for part, row, values, p in zip(meta, rows, logits, probabilities):
        questions[part["id"]] = {
            "ids": state + row["ids"], "shared": len(state), "markers": [len(state) + at for at in row["opts"]],
            "summary": len(state) + row["decide"], "logits": values.tolist(), "probabilities": p}
    answers = kev.api.to_answers(probabilities, meta)
    usage = {"input_tokens": len(encoded["ids"]), "output_tokens": kev.api.output_tokens(tokenizer, answers)}
    return {"body": body, "questions": questions, "answer": {"answers": answers, "usage": usage}}


def hide_paths(folder, spec):
    """Replaces the paths of this machine."""
    import kev.checkpoint
    meta = kev.checkpoint.read_meta(str(folder))
    meta.base = "base"
    kev.checkpoint.write_meta(folder, meta)
    if spec["lora"]:
        path = folder / "adapter_config.json"
        config = json.loads(path.read_text())
        config["base_model_name_or_path"] = "base"
        path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=DATA / "kev")
    parser.add_argument("--kev", required=True, help="a checkout of the family's repository")
    args = parser.parse_args()
    sys.path.insert(0, args.kev)
    import kev
    import kev.api
    import kev.checkpoint
    import kev.model

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for number, (name, spec) in enumerate(MODELS.items()):
        folder = args.out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        torch.manual_seed(SEED + number)
        make_model(kev, folder, spec, torch.Generator().manual_seed(SEED + number))
        tokenizer, model = load(kev, folder, spec)
        rows = [read(kev, tokenizer, model, body) for body in (REQUESTS if spec["full"] else REQUESTS[:4])]
        hide_paths(folder, spec)
        golden = {"torch": torch.__version__, "transformers": transformers.__version__, "rows": rows}
        (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
        questions = [q for row in rows for q in row["questions"].values()]
        print(name, len(questions), "questions; longest", max(len(q["ids"]) for q in questions), "tokens; largest logit",
              max(abs(v) for q in questions for v in q["logits"]))
    if args.out == DATA / "kev":
        link_same_tokenizers(DATA)


if __name__ == "__main__":
    main()
