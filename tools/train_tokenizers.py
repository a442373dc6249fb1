#!/usr/bin/env python3
"""Trains the tiny tokenizers of tests/data/tokenizers and writes cases.jsonl for each.

    python3 tools/train_tokenizers.py tests/data/tokenizers

Their components are those of models whose own vocabularies are not at hand. The vocabulary is of no use
but to test; what it is trained on is made here. Needs the `tokenizers` package, which is also the
reference that makes the cases {text, ids, ids_special, decoded}.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = ("the a of to and in is it you that he was for on are with as his they at be this from have or by one had not "
         "but what all were when we there can an your which their said if do will each about how up out them then she "
         "many some so these would other into has more her two like him see time could no make than first been its who "
         "now people my made over did down only way find use may water long little very after words called just where "
         "most know return def class import self print None True while lambda Straße naïve café Привет мир как дела "
         "東京 日本語 你好 世界 안녕하세요 שלום مرحبا नमस्ते").split()
SIGNS = [".", ",", "!", "?", ":", ";", "()", " = ", "->", "\n", "\n\n", "    ", "'s", "'ll", "123", "2024", "7", "--"]


def corpus():
    rng = random.Random(7)
    for _ in range(4000):
        words = []
        for _ in range(rng.randrange(3, 15)):
            word = rng.choice(WORDS)
            words.append(rng.choice([word, word, word.capitalize(), word + rng.choice(SIGNS)]))
        yield " ".join(words)


def byte_level_vocab(pattern, size, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre.Sequence([
        pre.Split(Regex(pattern), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def add_special(tokenizer, names):
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])


def bos_template(tokenizer, bos):
    return processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])


def llama3():
    tokenizer = byte_level_vocab(LLAMA3, 1500, ignore_merges=True)
    add_special(tokenizer, ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                            "<|end_header_id|>", "<|eot_id|>"])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), bos_template(tokenizer, "<|begin_of_text|>")])
    return tokenizer, "<|begin_of_text|>", "<|eot_id|>"


def nemo():
    tokenizer = byte_level_vocab(TEKKEN, 1000, ignore_merges=True)
    add_special(tokenizer, ["<s>", "</s>", "[INST]", "[/INST]"])
    tokenizer.post_processor = bos_template(tokenizer, "<s>")
    return tokenizer, "<s>", "</s>"


def sentencepiece(size, training_pre_tokenizer, first_tokens):
    """A BPE over U+2581-joined text with all byte tokens in the vocabulary."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = training_pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=first_tokens + BYTE_TOKENS, limit_alphabet=110,
        show_progress=False))
    # Byte tokens are tokens of the model only.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] not in BYTE_TOKENS]
    return Tokenizer.from_str(json.dumps(state))


def gemma():
    tokenizer = sentencepiece(1500, pre.Split("\u2581", "merged_with_next"),
                              ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"])
    tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in (2, 3)])
    tokenizer.pre_tokenizer = pre.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = bos_template(tokenizer, "<bos>")
    return tokenizer, "<bos>", "<eos>"


def mistral():
    tokenizer = sentencepiece(1200, pre.Split("\u2581", "merged_with_next"), ["<unk>", "<s>", "</s>"])
    add_special(tokenizer, ["[INST]", "[/INST]"])
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = bos_template(tokenizer, "<s>")
    return tokenizer, "<s>", "</s>"


def flags():
    """Every flag of added tokens, a normalizer that changes them, digits one by one, merges as text."""
    tokenizer = byte_level_vocab(LLAMA3, 700)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"[\u2018\u2019]"), "'"), normalizers.NFC()])
    tokenizer.pre_tokenizer = pre.Sequence(
        [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=True)])
    tokenizer.add_tokens([
        AddedToken("<word>", single_word=True, normalized=False),
        AddedToken("the", single_word=True, normalized=True),
        AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
        AddedToken("don\u2019t", normalized=True), AddedToken("A\u030a", normalized=True),
        AddedToken("<a>", normalized=False), AddedToken("<a><b>", normalized=False),
        AddedToken("  ", normalized=False)])
    add_special(tokenizer, ["<cls>", "<sep>"])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("<sep>", tokenizer.token_to_id("<sep>")), ("<cls>", tokenizer.token_to_id("<cls>")))
    return tokenizer, "<cls>", "<sep>"


def case_texts(tokenizer, name):
    rng = random.Random(name)
    specials = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    parts = WORDS + SIGNS + [" ", "  ", "   ", "\t", "\u2581", "\r\n", "it'\u017fx", "\u2019", "\U0001f600", "\u0301",
                             "\u212b", "\u00bd", "\u0663", "\x00", "THE", "theory", "HTMLParser", "<0x41>"]
    yield from ["", " ", "  ", "a", " a", "a ", "\n", "Hello, World!", "\u2581", " \u2581 ", "x" * 300]
    for _ in range(189):
        pieces = []
        for _ in range(rng.randrange(1, 12)):
            pieces.append(rng.choice(specials if rng.randrange(5) == 0 else parts))
            pieces.append(rng.choice(["", " ", " "]))
        yield "".join(pieces)


def main():
    for name, make in (("llama3-style", llama3), ("nemo-style", nemo), ("gemma-style", gemma),
                       ("mistral-style", mistral), ("flags", flags)):
        tokenizer, bos, eos = make()
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        state = json.loads(tokenizer.to_str())
        if name == "flags":
            state["model"]["merges"] = [" ".join(pair) for pair in state["model"]["merges"]]
        text = json.dumps(state, ensure_ascii=False)
        (folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"bos_token": bos, "eos_token": {"content": eos}, "pad_token": None}) + "\n")
        tokenizer = Tokenizer.from_str(text)
        with open(folder / "cases.jsonl", "w", encoding="ascii") as out:
            for case in case_texts(tokenizer, name):
                ids = tokenizer.encode(case, add_special_tokens=False).ids
                out.write(json.dumps({
                    "text": case, "ids": ids, "ids_special": tokenizer.encode(case).ids,
                    "decoded": tokenizer.decode(ids, skip_special_tokens=False)}) + "\n")


if __name__ == "__main__":
    main()
