#!/usr/bin/env python3
"""Write an encoder of random weights in f32 that Skein and sentence-transformers load from the same directory.

    VENV/bin/python tools/write_encoder.py bert-base|modernbert-base TOKENIZER_DIR OUT_DIR

The shapes are those of BERT-base and ModernBERT-base. Embeddings are means of the tokens' states, normalized. TOKENIZER_DIR
has a WordPiece tokenizer.json of at most 30,522 tokens (`skein model fetch minilm`). Needs the packages torch and transformers.
"""
import argparse
import json
import pathlib

import torch
import transformers

POSITIONS = 512  # of a text, in both: sentence-transformers cuts there
SPECIAL = dict(cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]")
IDS = dict(pad_token_id=0, cls_token_id=101, sep_token_id=102)
INPUTS = {"bert-base": ["input_ids", "token_type_ids", "attention_mask"], "modernbert-base": ["input_ids", "attention_mask"]}


def model_of(shape):
    torch.manual_seed(1)
    if shape == "bert-base":
        return transformers.BertModel(transformers.BertConfig(vocab_size=30522, pad_token_id=0))
    return transformers.ModernBertModel(transformers.ModernBertConfig(**IDS, bos_token_id=101, eos_token_id=102))


def write_tokenizer(source, out, inputs):
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tokenizer["truncation"] = tokenizer["padding"] = None
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    (out / "tokenizer_config.json").write_text(json.dumps(
        {**SPECIAL, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": POSITIONS, "model_input_names": inputs}))


def write_modules(out, width):
    """The files of sentence-transformers."""
    modules = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]
    (out / "modules.json").write_text(json.dumps([{"idx": int(name), "name": name, "path": path, "type": f"sentence_transformers.models.{kind}"}
                                                  for name, path, kind in modules], indent=2))
    (out / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": POSITIONS, "do_lower_case": False}))
    (out / "1_Pooling").mkdir(exist_ok=True)
    (out / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=INPUTS)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    model = model_of(args.shape)
    args.out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(args.tokenizer, args.out, INPUTS[args.shape])
    write_modules(args.out, model.config.hidden_size)
    model.save_pretrained(args.out)


if __name__ == "__main__":
    main()
