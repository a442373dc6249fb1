"""Encoders in GGUF files, as llama.cpp's converter writes them, against the directories that they are made of: tokenizers,
embeddings, classes and scores, bit for bit where the file has the same numbers."""
import json
import shutil
import subprocess

import gguf
import numpy
import pytest
from tokenizers import pre_tokenizers

from encoder_gguf import NOMIC_PARTS, in_file, mmbert_tokenizer, write_encoder_gguf
from safetensors_file import read_safetensors, widened, write_safetensors
from skein_server import ROOT, SKEIN_BIN, SkeinServer, fetched
from test_gguf import LAYERS, SHAPES, TOKENS, WIDTH, finish, llama_writer
from test_gguf_tokenizer import skein as tokenized
from test_rotating_encoders import post, served

DATA = ROOT / "tests/data"
TEXTS = ["Where is my parcel?", "naïve CAFÉ, über-straße №5 ﬁne", "你好 世界 hello", "a\u0301 e\u0300 \u00a0 tab\tand\nline", "x" * 120,
         "it's 3.14 + 2,000 (or so)...", "  spaces   around  ", "unbelievable [MASK] words ## here",
         "a <mask> b"]


def embeddings(model, inputs, *options):
    with SkeinServer(model, "--served-model-name", "m", *options) as server:
        return [item["embedding"] for item in post(server, "/v1/embeddings", {"model": "m", "input": inputs})["data"]]


def refusal(file):
    run = subprocess.run([SKEIN_BIN, "model", "info", file], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    return run.stderr


def golden_ids(folder):
    rows = json.loads((folder / "golden.json").read_text())["prompts"]
    return [row["ids"] for row in rows if row["second_segment_begin"] is None]


@pytest.mark.parametrize("name", ["bert", "roberta", "xlm-roberta", "distilbert", "nomic-bert-published", "modernbert",
                                  "modernbert-old-spelling"])
def test_embeddings_have_the_bits_of_the_directory(name, tmp_path):
    folder = served(name, tmp_path)
    file = write_encoder_gguf(folder, tmp_path / "m.gguf", pooling="mean")
    ids = golden_ids(folder)
    assert embeddings(file, ids) == embeddings(folder, ids)


def test_quantized_matrices_are_those_that_the_package_reads(tmp_path):
    name = "nomic-bert-published"
    folder = served(name, tmp_path)
    file = write_encoder_gguf(folder, tmp_path / "m.gguf", "q8_0")
    ids = golden_ids(folder)
    plain = embeddings(folder, ids, "--dtype", "f32")
    weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(file).tensors}
    tensors = read_safetensors(folder / "model.safetensors")
    write_safetensors(folder / "model.safetensors",
                      {tensor: weights[in_file(tensor, NOMIC_PARTS)].reshape(values.shape) for tensor, values in tensors.items()})
    found = embeddings(file, ids, "--dtype", "f32", "--quantization", "none")
    assert found == embeddings(folder, ids, "--dtype", "f32")
    assert found != plain
    packed = numpy.array(embeddings(file, ids, "--dtype", "f32"))
    assert (packed != found).any()
    assert (packed * found).sum(axis=1).min() > 0.999


def test_the_pooling_is_the_files(tmp_path):
    folder = served("bert", tmp_path)
    ids = golden_ids(folder)
    for pooling in ("cls", "lasttoken"):
        file = write_encoder_gguf(folder, tmp_path / f"{pooling}.gguf", pooling=pooling)
        found = embeddings(file, ids)
        assert found == embeddings(folder, ids, "--pooling", pooling.removesuffix("token"))
        assert found != embeddings(folder, ids)


@pytest.mark.parametrize("name", ["bert-uncased-style", "bert-cased-style", "xlm-roberta-style", "modernbert-style"])
def test_tokenizers_give_the_ids_of_the_directory(name, tmp_path):
    tokens = DATA / "tokenizers" / name
    size = 4000  # more than any has
    encoder = "modernbert" if name.startswith("modernbert") else "bert"
    folder = tmp_path / "encoder"
    shutil.copytree(DATA / "encoders" / encoder, folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if (tokens / file).exists():
            shutil.copy(tokens / file, folder / file)
    if name == "bert-uncased-style":  # files of BERT have no other added tokens
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"] if token["special"]]
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "config.json").read_text())
    config["vocab_size"] = size
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    for tensor, values in tensors.items():
        if tensor.endswith(("word_embeddings.weight", "tok_embeddings.weight")):
            tensors[tensor] = numpy.zeros((size, values.shape[1]), numpy.float32)
    write_safetensors(folder / "model.safetensors", tensors)
    file = write_encoder_gguf(folder, tmp_path / "m.gguf")
    assert tokenized(file, TEXTS) == tokenized(folder, TEXTS)


def test_mmbert_has_the_tokens_and_the_bits_of_the_directory(tmp_path):
    """Merges of characters: the ids of these texts are llama.cpp's, too."""
    folder = tmp_path / "mmbert"
    shutil.copytree(DATA / "modernbert/embedding", folder)
    (folder / "tokenizer.json").write_text(json.dumps(mmbert_tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<bos>", "eos_token": "<eos>"}))
    file = write_encoder_gguf(folder, tmp_path / "m.gguf", pooling="mean")
    texts = [*TEXTS, "a\nb", "a \n\n\n\n b", " ", "two  spaces", "the\u2581cat", "x<eos>y", "a  <mask>b", "\U0001f6a2 \x01"]
    assert tokenized(file, texts) == tokenized(folder, texts)
    assert embeddings(file, texts) == embeddings(folder, texts)
    early = gguf.GGUFWriter.add_tokenizer_pre
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf.GGUFWriter, "add_tokenizer_pre", lambda writer, pre: early(writer, "modern-bert"))
        write_encoder_gguf(folder, tmp_path / "early.gguf")
    assert "are read with the cuts 'mmbert' alone" in refusal(tmp_path / "early.gguf")


def classes(model, texts):
    with SkeinServer(model, "--served-model-name", "m") as server:
        return post(server, "/classify", {"model": "m", "input": texts})["data"]


def test_classes_and_labels_are_those_of_the_directory(tmp_path):
    golden = json.loads((DATA / "modernbert/classifier/golden.json").read_text())
    folder = tmp_path / "classifier"
    shutil.copytree(DATA / "modernbert/classifier", folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DATA / "tokenizers" / golden["tokenizer"] / file, folder / file)
    labels = list(json.loads((folder / "config.json").read_text())["id2label"].values())
    file = write_encoder_gguf(folder, tmp_path / "m.gguf", labels=labels)
    texts = [row["text"] for row in golden["rows"]]
    assert classes(file, texts) == classes(folder, texts)


@pytest.mark.parametrize("name", ["xlm-roberta-reranker", "roberta-classifier", "bert-classifier"])
def test_scores_of_pairs_are_those_of_the_directory(name, tmp_path):
    folder = served(name, tmp_path)
    file = write_encoder_gguf(folder, tmp_path / "m.gguf", pooler=name == "bert-classifier")
    body = {"model": "m", "text_1": "where is the cat", "text_2": ["the cat sat", "a dog ran home", "rain"]}

    def scores(model):
        with SkeinServer(model, "--served-model-name", "m") as server:
            if name.endswith("reranker"):
                return [item["score"] for item in post(server, "/v1/score", body)["data"]]
            return [item["probs"] for item in post(server, "/classify", {"model": "m", "input": body["text_2"]})["data"]]

    assert scores(file) == scores(folder)


def test_classifiers_whose_scores_would_be_others_are_refused(tmp_path):
    file = write_encoder_gguf(served("bert-classifier", tmp_path), tmp_path / "bert.gguf")
    assert "lacks the tensor 'cls.weight' in front of 'cls.output'" in refusal(file)
    file = write_encoder_gguf(served("distilbert-classifier", tmp_path), tmp_path / "distilbert.gguf")
    assert "a DistilBERT, whose head the file does not state" in refusal(file)


def test_other_files_are_refused_by_name(tmp_path):
    folder = served("bert", tmp_path)
    writer = gguf.GGUFWriter(tmp_path / "jina.gguf", "jina-bert-v2")
    finish(writer)
    assert "is 'jina-bert-v2'; supported are" in refusal(tmp_path / "jina.gguf")
    original = gguf.GGUFWriter.write_header_to_file

    def with_projection(self, *args, **kwargs):
        self.add_tensor("dense_2.weight", numpy.zeros((8, 32), numpy.float32))
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf.GGUFWriter, "write_header_to_file", with_projection)
        write_encoder_gguf(folder, tmp_path / "colbert.gguf")
    assert "of a ColBERT model" in refusal(tmp_path / "colbert.gguf")


@pytest.mark.parametrize("count", [-1, 0, 5000])
def test_counts_of_layers_out_of_range_are_refused_by_name(tmp_path, count):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf.GGUFWriter, "add_block_count", lambda self, _: self.add_int32("bert.block_count", count))
        file = write_encoder_gguf(served("bert", tmp_path), tmp_path / "bert.gguf")
    assert f"bert.block_count' is {count}; 1 to 4096 are allowed" in refusal(file)


def test_a_decoder_with_a_pooling_makes_embeddings(tmp_path):
    def write(path, pooling):
        random = numpy.random.default_rng(5)
        writer = llama_writer(path)
        if pooling:
            writer.add_pooling_type(gguf.PoolingType.LAST)

        def add(name, *shape):
            writer.add_tensor(name, random.standard_normal(shape).astype(numpy.float32) / 16)

        add("token_embd.weight", TOKENS, WIDTH)
        writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
        for layer in range(LAYERS):
            for norm in ("attn_norm", "ffn_norm"):
                writer.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(WIDTH, numpy.float32))
            for name, shape in SHAPES.items():
                add(f"blk.{layer}.{name}.weight", *shape)
        finish(writer)
        return path

    ids = [[1, 2, 3], [7, 5], [9] * 40]
    plain = embeddings(write(tmp_path / "plain.gguf", False), ids, "--pooling", "last")
    assert embeddings(write(tmp_path / "last.gguf", True), ids) == plain
    assert abs(numpy.linalg.norm(plain, axis=1) - 1).max() < 1e-5


def test_an_encoder_is_not_converted(tmp_path):
    file = write_encoder_gguf(served("bert", tmp_path), tmp_path / "m.gguf")
    run = subprocess.run([SKEIN_BIN, "model", "convert", file, tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "is an encoder; it is served as it is" in run.stderr


def test_a_real_model_has_the_embeddings_of_its_directory(tmp_path):
    folder = fetched("minilm")
    file = write_encoder_gguf(folder, tmp_path / "minilm.gguf", pooling="mean")
    assert tokenized(file, TEXTS) == tokenized(folder, TEXTS)
    assert embeddings(file, TEXTS) == embeddings(folder, TEXTS)


def write_reranker(path, as_classes):
    """A random Qwen3, as it is, or as the converter writes the reranker: the rows of its output matrix for "yes" and "no" alone."""
    random = numpy.random.default_rng(5)
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ye", "yes", "no"]
    sizes = {"embedding_length": 64, "feed_forward_length": 96, "head_count": 4, "head_count_kv": 2, "key_length": 16, "value_length": 16}
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(2)
    writer.add_context_length(1024)
    for name, size in sizes.items():
        getattr(writer, f"add_{name}")(size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["y e", "ye s", "n o"])
    if as_classes:
        writer.add_pooling_type(gguf.PoolingType.RANK)
        writer.add_classifier_output_labels(["yes", "no"])
    shapes = {"attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64), "attn_output": (64, 64), "ffn_gate": (96, 64),
              "ffn_up": (96, 64), "ffn_down": (64, 96)}
    tensors = {"token_embd": random.standard_normal((len(tokens), 64)), "output_norm": numpy.ones(64)}
    for layer in range(2):
        tensors |= {f"blk.{layer}.{name}": random.standard_normal(shape) / 8 for name, shape in shapes.items()}
        tensors |= {f"blk.{layer}.{name}": numpy.ones(64) for name in ("attn_norm", "ffn_norm")}
        tensors |= {f"blk.{layer}.{name}": numpy.ones(16) for name in ("attn_q_norm", "attn_k_norm")}
    output = random.standard_normal((len(tokens), 64)) / 8
    tensors |= {"cls.output": output[[tokens.index("yes"), tokens.index("no")]]} if as_classes else {"output": output}
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values.astype(numpy.float32))
    finish(writer)
    return path


def test_a_reranker_on_qwen3_scores_as_the_whole_model(tmp_path):
    body = {"model": "m", "query": "how do I get a refund", "documents": ["refunds take three days", "the shop opens at nine", "yes"]}

    def scores(file, *options):
        with SkeinServer(file, "--served-model-name", "m", "--dtype", "f32", *options) as server:
            return {item["index"]: item["relevance_score"] for item in post(server, "/rerank", body)["results"]}

    expected = scores(write_reranker(tmp_path / "whole.gguf", False), "--rerank-template", "qwen3")
    found = scores(write_reranker(tmp_path / "m.gguf", True))
    assert len(found) == 3 and len(set(found.values())) == 3
    assert all(abs(score - expected[index]) < 1e-6 for index, score in found.items())
