"""Tokenizers of GGUF files: the ids of the reference cases, through files that the package gguf writes."""
import json
import struct
import subprocess

import gguf
import numpy
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from skein_server import SHARED, SKEIN_BIN, STORIES, needed

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def vocabulary(folder):
    """(tokens by id, their types, the tokenizer.json)."""
    file = json.loads((folder / "tokenizer.json").read_text())
    added = {token["id"]: token for token in file["added_tokens"]}
    tokens = {id: token for token, id in file["model"]["vocab"].items()} | {i: t["content"] for i, t in added.items()}
    assert sorted(tokens) == list(range(len(tokens)))
    types = [NORMAL] * len(tokens)
    for id, token in added.items():
        types[id] = CONTROL if token["special"] else USER_DEFINED
    return [tokens[id] for id in range(len(tokens))], types, file


def write_model(path, kind, tokens, types, add_more):
    """A Llama of one layer and no sense around a vocabulary."""
    width = 32
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(kind)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    add_more(writer)
    writer.add_tensor("token_embd.weight", numpy.zeros((len(tokens), width), numpy.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(width, numpy.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", numpy.zeros((width, width), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_byte_level(path, folder, pre, merges_as=" ".join):
    tokens, types, file = vocabulary(folder)
    merges = [merge if isinstance(merge, str) else merges_as(merge) for merge in file["model"]["merges"]]

    def add_more(writer):
        writer.add_tokenizer_pre(pre)
        writer.add_token_merges(merges)
        writer.add_bos_token_id(len(tokens) - 1)

    return write_model(path, "gpt2", tokens, types, add_more)


def skein(path, texts, *options):
    run = subprocess.run([SKEIN_BIN, "tokenize", path, *options], capture_output=True, text=True, encoding="utf-8",
                         input="".join(json.dumps({"text": text}) + "\n" for text in texts), timeout=120)
    assert run.returncode == 0, run.stderr
    return [json.loads(line)["ids"] for line in run.stdout.splitlines()]


@pytest.mark.parametrize("name, pre", [("gpt2", "gpt-2"), ("qwen3", "qwen2")])
def test_byte_level_tokenizers_give_the_reference_ids(tmp_path, name, pre):
    folder = needed(SHARED / "tokenizers" / name)
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    path = write_byte_level(tmp_path / f"{name}.gguf", folder, pre)
    for case, ids in zip(cases, skein(path, [case["text"] for case in cases]), strict=True):
        assert ids == case["ids"], case


def test_llama_3s_cuts_are_those_of_the_library(tmp_path):
    """Llama 3's rules on GPT-2's vocabulary, since its own is not at hand."""
    folder = needed(SHARED / "tokenizers/gpt2")
    tokens, types, file = vocabulary(folder)
    reference = Tokenizer(models.BPE(file["model"]["vocab"], [tuple(merge) for merge in file["model"]["merges"]],
                                     ignore_merges=True))
    words = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    reference.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    reference.decoder = decoders.ByteLevel()
    reference.add_special_tokens([tokens[-1]])
    reference.post_processor = processors.TemplateProcessing(
        single=f"{tokens[-1]} $A", special_tokens=[(tokens[-1], len(tokens) - 1)])
    texts = [json.loads(line)["text"] for line in (folder / "cases.jsonl").read_text().splitlines()]
    path = write_byte_level(tmp_path / "llama3.gguf", folder, "llama-bpe")
    # The begin of a text is added without a word about it in the file.
    for options, special in (([], False), (["--special"], True)):
        for text, ids in zip(texts, skein(path, texts, *options), strict=True):
            assert ids == reference.encode(text, add_special_tokens=special).ids, text


CUTS = {
    "qwen35": (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+", normalizers.NFC()),
    "gpt-4o": (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
               r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
               r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+", None),
}


@pytest.mark.parametrize("pre", CUTS)
def test_cuts_are_those_of_the_library(tmp_path, pre):
    """Published rules on GPT-2's vocabulary, since their own are not at hand."""
    folder = needed(SHARED / "tokenizers/gpt2")
    _, _, file = vocabulary(folder)
    reference = Tokenizer(models.BPE(file["model"]["vocab"], [tuple(merge) for merge in file["model"]["merges"]]))
    words, normalizer = CUTS[pre]
    if normalizer:
        reference.normalizer = normalizer
    reference.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    texts = [json.loads(line)["text"] for line in (folder / "cases.jsonl").read_text().splitlines()]
    texts = [text for text in texts if "<|endoftext|>" not in text]
    texts += ["we'LL See theHTTPServer's 12345 \u0928\u092e\u0938\u094d\u0924\u0947 e\u0301t\u00e9//\r\n\n  end \u0301x"]
    for text, ids in zip(texts, skein(write_byte_level(tmp_path / "cuts.gguf", folder, pre), texts), strict=True):
        assert ids == reference.encode(text).ids, text


def scores_of(path):
    """The scores of llama2.c's tokenizer file, by id."""
    data, scores = path.read_bytes(), []
    position = 4
    while position < len(data):
        score, length = struct.unpack_from("<fi", data, position)
        scores.append(score)
        position += 8 + length
    return scores


def test_sentencepiece_merges_come_from_the_scores(tmp_path):
    folder = needed(STORIES)
    tokens, types, _ = vocabulary(folder)
    types = [BYTE if len(token) == 6 and token.startswith("<0x") else kind for token, kind in zip(tokens, types)]

    def add_more(writer):
        writer.add_token_scores(scores_of(folder / "tok512.bin"))
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    path = write_model(tmp_path / "stories.gguf", "llama", tokens, types, add_more)
    cases = [json.loads(line) for line in (folder / "tokenizer_cases.jsonl").read_text().splitlines()]
    texts = [case["text"] for case in cases]
    for options, key in (([], "ids"), (["--special"], "ids_special")):
        for case, ids in zip(cases, skein(path, texts, *options), strict=True):
            assert ids == case[key], case
