#!/usr/bin/env python3
"""Trains the tiny tokenizers of tests/data/tokenizers and writes cases.jsonl for each.

    python3 tools/train_tokenizers.py tests/data/tokenizers [NAME...]

Their components are those of models whose own vocabularies are not at hand. The vocabulary is of no use
but to test; what it is trained on is made here. Needs the `tokenizers` package, which is also the
reference that makes the cases {text, ids, ids_special, decoded, pair}: `pair` is
the text followed by the text backwards, as [id, type id, begin, end].
"""
import json
import pathlib
import random
import sys

from charsmap import build_charsmap
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# DeepSeek-V3 cuts in three steps; o200k of tiktoken keeps contractions with their words.
DEEPSEEK_V3 = (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
               "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
               "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
DEEPSEEK_LLM = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
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


def cls_sep_template(tokenizer, cls, sep):
    return processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B {sep}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)])


def modernbert():
    """GPT-NeoX's bytes and runs of spaces between BERT's special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=900, special_tokens=["|||IP_ADDRESS|||", "<|padding|>"],
        initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(12, 1, -1)])
    tokenizer.add_special_tokens(["<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
    tokenizer.add_tokens([f"[unused{n}]" for n in range(3)])
    tokenizer.post_processor = cls_sep_template(tokenizer, "[CLS]", "[SEP]")
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, "[CLS]", "[SEP]"


def mmbert():
    """Gemma's tokens between <bos> and <eos>."""
    tokenizer, bos, eos = gemma()
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = cls_sep_template(tokenizer, bos, eos)
    return tokenizer, bos, eos


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


def train_byte_level(pre_tokenizer, size, specials, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
    tokenizer.decoder = decoders.ByteLevel()
    add_special(tokenizer, specials)
    return tokenizer


def splits(patterns, *more):
    return pre.Sequence([pre.Split(Regex(p), "isolated") for p in patterns] + list(more)
                        + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def deepseek_v3():
    tokenizer = train_byte_level(splits(DEEPSEEK_V3), 900, [
        "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>"])
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.post_processor = bos_template(tokenizer, "<\uff5cbegin\u2581of\u2581sentence\uff5c>")
    return tokenizer, "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"


def deepseek_llm():
    tokenizer = train_byte_level(splits(DEEPSEEK_LLM, pre.Digits(individual_digits=True)), 800, ["<bos>", "<eos>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, "<bos>", "<eos>"


def starcoder():
    tokenizer = train_byte_level(pre.Sequence([
        pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False, use_regex=True)]),
        800, ["<|endoftext|>", "<fim_prefix>", "<fim_suffix>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    return tokenizer, "<|endoftext|>", "<|endoftext|>"


def o200k():
    tokenizer = train_byte_level(splits([O200K]), 900, ["<|endoftext|>", "<|start|>", "<|message|>"])
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=True), bos_template(tokenizer, "<|start|>")])
    return tokenizer, "<|start|>", "<|endoftext|>"


def roberta():
    tokenizer = train_byte_level(pre.ByteLevel(add_prefix_space=True), 800, ["<s>", "</s>", "<unk>", "<pad>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("_"), normalizers.Replace("_", "")])
    ids = tokenizer.token_to_id
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", ids("</s>")), ("<s>", ids("<s>")), trim_offsets=True, add_prefix_space=True)
    return tokenizer, "<s>", "</s>"


def pair_template(tokenizer, cls, sep, second="$B:1", last=1):
    return processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} {second} {sep}:{last}",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in (cls, sep)])


def word_piece(size, normalizer, pre_tokenizer, **options):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", **options))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=90,
        show_progress=False))
    return tokenizer, "[CLS]", "[SEP]"


def bert_uncased():
    made = word_piece(700, normalizers.BertNormalizer(), pre.BertPreTokenizer())
    made[0].post_processor = pair_template(*made)
    made[0].decoder = decoders.WordPiece(prefix="##", cleanup=True)
    made[0].add_tokens([AddedToken("H\u00c9LLO", normalized=True), AddedToken("don't", single_word=True)])
    return made


def mpnet():
    """BERT's words between RoBERTa's special tokens."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre.BertPreTokenizer()
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "[UNK]"], limit_alphabet=90, show_progress=False))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tokenizer, "<s>", "</s>"


def bert_cased():
    made = word_piece(700, normalizers.BertNormalizer(lowercase=False, strip_accents=False),
                      pre.BertPreTokenizer(), max_input_chars_per_word=12)
    tokenizer, cls, sep = made
    tokenizer.post_processor = processors.BertProcessing(
        (sep, tokenizer.token_to_id(sep)), (cls, tokenizer.token_to_id(cls)))
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return made


def word_piece_signs():
    """WordPiece with other parts: NFKD, StripAccents, Nmt, Whitespace, FixedLength."""
    made = word_piece(600, normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        pre.Sequence([pre.Whitespace(), pre.FixedLength(7)]))
    made[0].decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return made


def word_level():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFD(), normalizers.Replace(Regex(r"\s{2,}|\d+"), "#"), normalizers.Strip(left=True, right=True)])
    tokenizer.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), pre.CharDelimiterSplit("-"),
                                            pre.Punctuation("merged_with_previous")])
    tokenizer.train_from_iterator(corpus(), trainers.WordLevelTrainer(
        vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False))
    return tokenizer, "<s>", "</s>"


def charsmap():
    """A map like those of sentencepiece's nmt_nfkc: compatibility, composition, spaces, what is dropped."""
    nfkc = normalizers.NFKC()
    mapping = dict.fromkeys("\t\n\r\u200b\u2028\ufeff", " ")
    mapping.update({chr(c): "" for c in (*range(1, 9), 0x7F, 0xAD, 0x200C, 0x200D)})
    for low, high in ((0xA0, 0x250), (0x2070, 0x2150), (0x2460, 0x2474), (0xFB00, 0xFB07), (0xFF01, 0xFF5F),
                      (0xF900, 0xF920), (0x1D400, 0x1D420), (0x1F100, 0x1F110)):
        for c in map(chr, range(low, high)):
            if nfkc.normalize_str(c) != c:
                mapping[c] = nfkc.normalize_str(c)
    nfd = normalizers.NFD()
    for c in map(chr, range(0xC0, 0x250)):
        if len(nfd.normalize_str(c)) > 1:
            mapping[nfd.normalize_str(c)] = c
    mapping.update({"\u2026": "...", "\r\n": " ", "\u0e33": "\u0e4d\u0e32", "\ufdfa": "صلى الله عليه وسلم"})
    return normalizers.Precompiled(build_charsmap({k.encode(): v for k, v in mapping.items()}))


def unigram(size, normalizer, pre_tokenizer, specials, unk, **options):
    """With the options only when it is used, not trained."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(
        vocab_size=size, special_tokens=specials, unk_token=unk, show_progress=False))
    state = json.loads(tokenizer.to_str())
    vocab = state["model"]["vocab"]
    if options.get("byte_fallback"):
        state["model"]["byte_fallback"] = True
        vocab += [[token, -12.5] for token in BYTE_TOKENS]
    return Tokenizer.from_str(json.dumps(state))


def xlm_roberta():
    tokenizer = unigram(700, charsmap(), pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()]),
                        ["<s>", "<pad>", "</s>", "<unk>"], "<unk>")
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("<s>", "</s>")])
    return tokenizer, "<s>", "</s>"


def deberta():
    """As transformers converts the SentencePiece models of DeBERTa v2 and v3."""
    tokenizer = unigram(650, normalizers.Sequence([normalizers.Strip(), charsmap(), normalizers.Replace(Regex(" {2,}"), " ")]),
                        pre.Sequence([pre.Metaspace(prepend_scheme="always")]), ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[UNK]")
    tokenizer.add_special_tokens([AddedToken("[MASK]", normalized=False)])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
    return tokenizer, "[CLS]", "[SEP]"


def t5():
    tokenizer = unigram(600, normalizers.Sequence([
        charsmap(), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")]),
        pre.Metaspace(prepend_scheme="first"), ["<pad>", "</s>", "<unk>"], "<unk>")
    tokenizer.add_special_tokens(["<extra_id_0>", "<extra_id_1>"])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))])
    return tokenizer, "<pad>", "</s>"


def unigram_bytes():
    tokenizer = unigram(500, normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=True, right=False)]),
                        pre.Metaspace(prepend_scheme="always"), ["<unk>", "<s>", "</s>"], "<unk>", byte_fallback=True)
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer, "<s>", "</s>"


def bpe_words():
    """BPE over characters with unknown ones and no bytes to fall back on, for words without spaces."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace(prepend_scheme="first")])
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=60, show_progress=False))
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    return tokenizer, "<s>", "</s>"


NUM_PAIRS = 50  # that many cases of each have a `pair`


def case_texts(tokenizer, name):
    rng = random.Random(name)
    specials = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    parts = WORDS + SIGNS + [" ", "  ", "   ", "\t", "\u2581", "\r\n", "it'\u017fx", "\u2019", "\U0001f600", "\u0301",
                             "\u212b", "\u00bd", "\u0663", "\x00", "THE", "theory", "HTMLParser", "<0x41>"]
    yield from ["", " ", "  ", "a", " a", "a ", "\n", "Hello, World!", "\u2581", " \u2581 ", "x" * 300]
    for _ in range(189 if name in FIRST else 89):
        pieces = []
        for _ in range(rng.randrange(1, 12)):
            pieces.append(rng.choice(specials if rng.randrange(5) == 0 else parts))
            pieces.append(rng.choice(["", " ", " "]))
        yield "".join(pieces)


FIRST = ("llama3-style", "nemo-style", "gemma-style", "mistral-style", "flags")
TOKENIZERS = {
    "llama3-style": llama3, "nemo-style": nemo, "gemma-style": gemma, "mistral-style": mistral, "flags": flags,
    "deepseek-v3-style": deepseek_v3, "deepseek-llm-style": deepseek_llm, "starcoder-style": starcoder,
    "o200k-style": o200k, "roberta-style": roberta, "bert-uncased-style": bert_uncased,
    "bert-cased-style": bert_cased, "wordpiece-parts": word_piece_signs, "wordlevel-parts": word_level,
    "modernbert-style": modernbert, "mmbert-style": mmbert, "xlm-roberta-style": xlm_roberta, "deberta-style": deberta,
    "t5-style": t5, "unigram-bytes": unigram_bytes, "bpe-words": bpe_words, "mpnet-style": mpnet}


def main():
    for name, make in TOKENIZERS.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
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
            for index, case in enumerate(case_texts(tokenizer, name)):
                ids = tokenizer.encode(case, add_special_tokens=False).ids
                line = {"text": case, "ids": ids, "ids_special": tokenizer.encode(case).ids,
                        "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
                if index < NUM_PAIRS:
                    full = tokenizer.encode(case, case[::-1])
                    line["pair"] = [[i, t, *o] for i, t, o in zip(full.ids, full.type_ids, full.offsets)]
                out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
