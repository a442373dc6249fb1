"""Gemma 3, Gemma 2 and EmbeddingGemma over HTTP, against transformers and sentence-transformers (tests/data/gemma)."""
import json
import shutil
import subprocess

import gguf
import httpx
import numpy
import pytest

from safetensors_file import read_safetensors
from skein_server import ROOT, SKEIN_BIN, SkeinServer

DATA = ROOT / "tests/data"


def make_model(name, folder):
    """A model's directory with its tokenizer, and its golden rows."""
    shutil.copytree(DATA / "gemma" / name, folder / name)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DATA / "tokenizers/gemma-style" / file, folder / name / file)
    if name != "embedding":
        shutil.copy(DATA / "chat_templates/turns.jinja", folder / name / "chat_template.jinja")
    return folder / name, json.loads((folder / name / "golden.json").read_text())["rows"]


def post(server, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def chat(server, row):
    return post(server, "/v1/chat/completions", {"model": "chat", "messages": row["messages"], "temperature": 0,
                                                 "max_tokens": len(row["answer_ids"])})


@pytest.mark.parametrize("name", ["chat", "chat2"])
def test_answers_are_those_of_transformers(tmp_path, name):
    folder, rows = make_model(name, tmp_path)
    with SkeinServer(folder, "--dtype", "f32", "--served-model-name", "chat") as server:
        for _ in range(2):  # the second time, the prompts are in the cache
            for row in rows:
                answer = chat(server, row)
                assert answer["usage"]["prompt_tokens"] == len(row["prompt_ids"])
                assert answer["choices"][0]["message"]["content"] == row["answer"]


@pytest.mark.parametrize("name", ["chat", "chat2"])
def test_scores_have_the_same_bits_in_chunks_and_from_the_cache(tmp_path, name):
    folder, rows = make_model(name, tmp_path)
    body = {"model": "chat", "prompt": rows[2]["prompt_ids"], "max_tokens": 3, "temperature": 0, "logprobs": 2}
    seen = set()
    for options in ([], ["--max-num-batched-tokens", "32", "--scheduling", "chunked-fcfs"], ["--threads", "2"]):
        with SkeinServer(folder, "--dtype", "bf16", "--served-model-name", "chat", *options) as server:
            for _ in range(2):
                choice = post(server, "/v1/completions", body)["choices"][0]
                seen.add(json.dumps([choice["text"], choice["logprobs"]]))
    assert len(seen) == 1, seen


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-5), ("bf16", 0.08)])
def test_embeddings_are_those_of_sentence_transformers(tmp_path, dtype, tolerance):
    folder, rows = make_model("embedding", tmp_path)
    with SkeinServer(folder, "--dtype", dtype) as server:
        vectors = {}
        for name in (None, "query", "document"):
            named = [row for row in rows if row["prompt_name"] == name]
            body = {"model": "embedding", "input": [row["text"] for row in named]}
            if name:
                body["prompt_name"] = name
            answer = post(server, "/v1/embeddings", body)
            assert answer["usage"]["prompt_tokens"] == sum(len(row["ids"]) for row in named)
            for row, item in zip(named, answer["data"]):
                vectors[row["text"], name] = item["embedding"]
                assert numpy.abs(numpy.array(item["embedding"]) - row["embedding"]).max() < tolerance
        alone = post(server, "/v1/embeddings", {"model": "embedding", "input": rows[-3]["text"]})
        assert alone["data"][0]["embedding"] == vectors[rows[-3]["text"], None]


GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
              "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
              "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def write_gguf(folder, path, architecture="gemma3"):
    """The model as llama.cpp's converter writes it: norms with their one, SentencePiece's scores."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_sliding_window(config["sliding_window"])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    else:
        rope = config["rope_parameters"]["full_attention"]
        writer.add_rope_freq_base(rope["rope_theta"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = {id: token for token, id in tokenizer["model"]["vocab"].items()}
    tokens |= {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    writer.add_tokenizer_model("llama")
    writer.add_token_list([tokens[i] for i in range(len(tokens))])
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_token_types([3 if i in special else 6 if tokens[i].startswith("<0x") else 1 for i in range(len(tokens))])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_eot_token_id(5)
    writer.add_unk_token_id(3)
    writer.add_add_space_prefix(False)
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    if architecture == "gemma-embedding":
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_add_eos_token(True)
        for module, name in (("2_Dense", "dense_2"), ("3_Dense", "dense_3")):
            writer.add_tensor(name + ".weight", read_safetensors(folder / module / "model.safetensors")["linear.weight"])
    for name, values in read_safetensors(folder / "model.safetensors").items():
        stem = "model." + name.removeprefix("model.").removesuffix(".weight")
        if stem not in whole:
            _, _, layer, part = stem.split(".", 3)
            stem = f"blk.{layer}.{GGUF_NAMES[part]}"
        writer.add_tensor(whole.get(stem, stem) + ".weight", values + numpy.float32(1) if "norm" in name else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(("name", "architecture"), [("chat", "gemma3"), ("chat2", "gemma2")])
def test_a_gguf_file_has_the_bits_of_the_directory(tmp_path, name, architecture):
    folder, rows = make_model(name, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["query_pre_attn_scalar"] = config["head_dim"]  # what a file cannot say
    (folder / "config.json").write_text(json.dumps(config))
    file = write_gguf(folder, tmp_path / "gemma.gguf", architecture)
    subprocess.run([SKEIN_BIN, "model", "convert", file, tmp_path / "converted", "--dtype", "f32"], check=True, timeout=60)
    body = {"prompt": rows[2]["prompt_ids"], "max_tokens": 6, "temperature": 0, "logprobs": 2}
    seen = []
    for model in (folder, file, tmp_path / "converted"):
        with SkeinServer(model, "--dtype", "f32") as server:
            name = httpx.get(server.url + "/v1/models", timeout=60).json()["data"][0]["id"]
            choice = post(server, "/v1/completions", {"model": name, **body})["choices"][0]
            seen.append(choice["logprobs"]["token_logprobs"])
    assert seen[0] == seen[1]
    # The converted norms have lost and regained their one.
    assert numpy.abs(numpy.array(seen[2]) - seen[0]).max() < 1e-4


def test_a_gguf_file_of_an_embedding_model_has_its_modules(tmp_path):
    folder, rows = make_model("embedding", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["query_pre_attn_scalar"] = config["head_dim"]  # what a file cannot say
    (folder / "config.json").write_text(json.dumps(config))
    file = write_gguf(folder, tmp_path / "embedding.gguf", "gemma-embedding")
    seen = []
    for model in (folder, file):
        with SkeinServer(model, "--dtype", "f32", "--served-model-name", "m") as server:
            answer = post(server, "/v1/embeddings", {"model": "m", "input": [row["ids"] for row in rows]})
            seen.append([item["embedding"] for item in answer["data"]])
            assert not any("ignored" in line for line in server.log)
    assert seen[0] == seen[1]
    run = subprocess.run([SKEIN_BIN, "model", "convert", file, tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "it is served as it is" in run.stderr
