#!/usr/bin/env python3
"""Make a tiny random Gemma 3, Gemma 2 and EmbeddingGemma to be served, and record what the reference answers.

    .venv-dev/bin/python tools/make_golden_gemma.py [OUT_DIR]   (default: tests/data/gemma)

Writes OUT_DIR/chat/, OUT_DIR/embedding/ and OUT_DIR/chat2/ (Gemma 2) with golden.json, computed from the files as written, loaded again, in float64. The
tokenizer is tests/data/tokenizers/gemma-style and the chat template tests/data/chat_templates/turns.jinja. `chat` and `chat2` hold for
each of its conversations the messages, the ids of the prompt and of the greedy answer, and its text; `embedding` for each text
the name of the prompt (or null), the ids and the vector.
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers
from torch import nn

import make_golden_decoders as decoders
import make_golden_models as models
import make_golden_sentence as sentence

SEED = 5077
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
SHAPE = {**decoders.GEMMA, "vocab_size": 1504, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 6,
         "num_attention_heads": 2, "max_position_embeddings": 512, "bos_token_id": 2, "eos_token_id": [1, 5],
         "pad_token_id": 0}
SHAPE2 = {**SHAPE, **{key: decoders.GEMMA2[key] for key in ("rope_parameters", "attn_logit_softcapping", "final_logit_softcapping")}}
CONVERSATIONS = [
    [{"role": "user", "content": "Where is the book?"}],
    [{"role": "system", "content": "Say little."}, {"role": "user", "content": "  Straße naïve café: 東京, Привет мир!\n"}],
    [{"role": "user", "content": "The long way home was more than two hours by water. " * 6},
     {"role": "assistant", "content": "I know."}, {"role": "user", "content": "Why?"}],
]
PROMPTS = {"query": "task: search result | query: ", "document": "title: none | text: "}
TEXTS = ["a", "Where is the book?", "Straße naïve café: 東京, Привет мир!",
         "The long way home was more than two hours by water. " * 8]
ANSWER = 8  # tokens


def load_tokenizer():
    folder = DATA / "tokenizers" / "gemma-style"
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<bos>", eos_token="<eos>",
        chat_template=(DATA / "chat_templates" / "turns.jinja").read_text())


def write_model(folder, cls, members, generator):
    config = cls.config_class(**members)
    config.dtype = torch.float32
    model = cls(config)
    decoders.randomize(model, generator)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    return decoders.load_double(folder, cls)


def make_chat(folder, tokenizer, cls=transformers.Gemma3ForCausalLM, shape=SHAPE):
    for seed in range(SEED, SEED + 50):  # until no decision is close, and no answer ends early
        generator = torch.Generator().manual_seed(seed)
        model = write_model(folder, cls, shape, generator)
        rows = []
        for messages in CONVERSATIONS:
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            ids = tokenizer(text, add_special_tokens=False).input_ids
            answer, gap = models.greedy(model, ids, ANSWER)
            text = tokenizer.decode(answer, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            rows.append({"messages": messages, "prompt_ids": ids, "answer_ids": answer, "answer": text, "gap": gap})
        if all(row["gap"] > 0.02 and not {0, 1, 2, 3, 4, 5} & set(row["answer_ids"]) for row in rows):
            return {"seed": seed, "rows": rows}
    raise RuntimeError("no seed without a close decision")


def make_chat2(folder, tokenizer):
    return make_chat(folder, tokenizer, transformers.Gemma2ForCausalLM, SHAPE2)


def make_embedding(folder, tokenizer):
    generator = torch.Generator().manual_seed(SEED)
    members = {**SHAPE, "use_bidirectional_attention": True, "eos_token_id": 1}
    model = write_model(folder, transformers.Gemma3TextModel, members, generator)
    modules = sentence.make_modules(folder, 24, "mean", [(40, nn.Identity(), False), (16, nn.Identity(), False)], True,
                                    generator)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": PROMPTS}) + "\n")
    rows = []
    for text in TEXTS:
        for prompt in [None, *PROMPTS]:
            ids = tokenizer(PROMPTS.get(prompt, "") + text).input_ids
            rows.append({"text": text, "prompt_name": prompt, "ids": ids, "embedding": sentence.embed(model, modules, ids)})
    return {"seed": SEED, "rows": rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=DATA / "gemma")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    tokenizer = load_tokenizer()
    for name, make in (("chat", make_chat), ("embedding", make_embedding), ("chat2", make_chat2)):
        golden = {"torch": torch.__version__, "transformers": transformers.__version__, **make(out / name, tokenizer)}
        (out / name / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
        print(name, [len(row.get("ids", row.get("prompt_ids"))) for row in golden["rows"]])


if __name__ == "__main__":
    main()
