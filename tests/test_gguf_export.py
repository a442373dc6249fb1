"""`skein model convert DIR FILE.gguf` against the package gguf: what it reads of the file, and what Skein serves of it."""
import json
import shutil
import subprocess
import urllib.request

import gguf
import numpy
import pytest

from safetensors_file import bf16, read_safetensors, write_safetensors
from skein_server import ROOT, SHARED, SKEIN_BIN, STORIES, SkeinServer, needed
from test_gguf import huggingface_rows, values

MODELS = ROOT / "tests/data/models"
WIDTH, MLP, HEADS, KV_HEADS, LAYERS, TOKENS = 256, 512, 4, 2, 2, 320
TYPES = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_k"]
SPECIAL = ["<pad>", "<s>", "</s>", "<turn>"]
TEMPLATE = "{% for m in messages %}{{ m['content'] }}</s>{% endfor %}"


def byte_level(pre_tokenizer=None, **model):
    """A tokenizer.json of 128 tokens: special ones, printable characters, and merges of "a", "b" and a space."""
    letters = [chr(i) for i in range(33, 127)] + ["\u0120"]
    merges = [["a", "b"], ["ab", "a"], ["\u0120", "a"]]
    tokens = SPECIAL + letters + ["".join(merge) for merge in merges]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": i < 3} for i, text in enumerate(SPECIAL)],
            "normalizer": None, "pre_tokenizer": pre_tokenizer or step, "post_processor": step, "decoder": step,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges} | model}


def add_tokenizer(folder, tokenizer=None, **config):
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer or byte_level()))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
         "chat_template": TEMPLATE} | config))


def shapes():
    found = {"model.embed_tokens": (TOKENS, WIDTH), "lm_head": (TOKENS, WIDTH)}
    for layer in range(LAYERS):
        kv = WIDTH // HEADS * KV_HEADS
        found |= {f"model.layers.{layer}.{name}": shape for name, shape in {
            "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (kv, WIDTH), "self_attn.v_proj": (kv, WIDTH),
            "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (MLP, WIDTH), "mlp.up_proj": (MLP, WIDTH),
            "mlp.down_proj": (WIDTH, MLP)}.items()}
    return found


@pytest.fixture(scope="module", name="llama")
def make_llama(tmp_path_factory):
    """A Llama whose rows are whole blocks of every type."""
    folder = tmp_path_factory.mktemp("export") / "llama"
    folder.mkdir()
    random = numpy.random.default_rng(5)
    tensors = {name + ".weight": (random.standard_normal(shape) * 0.05).astype(numpy.float32)
               for name, shape in shapes().items()}
    for name in ["model.norm", *(f"model.layers.{layer}.{norm}" for layer in range(LAYERS)
                                 for norm in ("input_layernorm", "post_attention_layernorm"))]:
        tensors[name + ".weight"] = (1 + 0.1 * random.standard_normal(WIDTH)).astype(numpy.float32)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": MLP,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "num_hidden_layers": LAYERS, "vocab_size": TOKENS,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 1e5, "tie_word_embeddings": False,
        "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": [2, 3]}))
    add_tokenizer(folder)
    return folder


def export(model, file, *args):
    run = subprocess.run([SKEIN_BIN, "model", "convert", model, file, *args], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return file


def refusal(model, file, *args):
    run = subprocess.run([SKEIN_BIN, "model", "convert", model, file, *args], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and not list(file.parent.glob(file.name + "*")), run.stdout
    return run.stderr + run.stdout


def tensors_of(file):
    """weight -> (type, f32 values in the order of the model), as the package gguf reads them."""
    names = {"token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm"}
    found = {}
    for tensor in gguf.GGUFReader(file).tensors:
        parts = tensor.name.removesuffix(".weight").split(".")
        matrix = tensor.data if tensor.tensor_type.name == "F32" else values(tensor.data, tensor.tensor_type)
        if parts[-1] in ("attn_q", "attn_k"):
            matrix = huggingface_rows(matrix, HEADS if parts[-1] == "attn_q" else KV_HEADS)
        prefix = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        found[prefix + names[parts[-1]] + ".weight"] = tensor.tensor_type.name, matrix
    return found


def error_of(name, matrix):
    """The mean square of what the package's own rounding to the type loses."""
    kind = gguf.GGMLQuantizationType[name]
    return numpy.square(values(gguf.quants.quantize(matrix, kind), kind) - matrix).mean()


@pytest.mark.parametrize("dtype", TYPES)
def test_the_package_reads_the_weights(llama, tmp_path, dtype):
    plain = read_safetensors(llama / "model.safetensors")
    found = tensors_of(export(llama, tmp_path / "model.gguf", "--dtype", dtype, "--embedding-dtype", dtype))
    assert found.keys() == plain.keys()
    for name, matrix in plain.items():
        kind, read = found[name]
        assert kind == ("F32" if matrix.ndim == 1 else dtype.upper())
        if kind == "F32":
            assert numpy.array_equal(read, matrix)
        elif kind == "F16":
            assert numpy.array_equal(read, matrix.astype(numpy.float16).astype(numpy.float32))
        elif kind == "BF16":
            assert numpy.array_equal(bf16(read), bf16(matrix)) and numpy.array_equal(bf16(read).astype("u4") << 16, read.view("u4"))
        else:
            # Q4_K, which the package does not write, loses less than Q4_0, and both less than the package's Q4_0.
            lost = numpy.square(read - matrix).mean()
            limit = {"Q8_0": 1.02 * error_of("Q8_0", matrix), "Q4_0": error_of("Q4_0", matrix),
                     "Q4_K": 0.8 * error_of("Q4_0", matrix)}[kind]
            assert 0 < lost < limit, (name, lost, limit)


def test_the_metadata_is_what_engines_ask_for(llama, tmp_path):
    reader = gguf.GGUFReader(export(llama, tmp_path / "tiny.gguf", "--dtype", "q4_k"))
    found = {key: field.contents() for key, field in reader.fields.items()}
    expected = {"general.architecture": "llama", "general.name": "tiny", "general.file_type": 14, "llama.block_count": LAYERS,
                "llama.context_length": 128, "llama.embedding_length": WIDTH, "llama.feed_forward_length": MLP,
                "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS, "llama.vocab_size": TOKENS,
                "llama.rope.freq_base": 1e5, "llama.rope.dimension_count": WIDTH // HEADS, "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
                "tokenizer.ggml.eot_token_id": 3, "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.add_bos_token": False,
                "tokenizer.chat_template": TEMPLATE, "tokenizer.ggml.merges": ["a b", "ab a", "\u0120 a"]}
    assert {key: found.get(key) for key in expected} == expected
    assert found["llama.attention.layer_norm_rms_epsilon"] == pytest.approx(1e-5)
    tokens, types = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.token_type"]
    assert len(tokens) == len(types) == TOKENS and len(set(tokens)) == TOKENS
    assert tokens[:4] == SPECIAL and types[:5] == [3, 3, 3, 4, 1] and types[-1] == 5


def test_parts_have_types_of_their_own(llama, tmp_path):
    found = tensors_of(export(llama, tmp_path / "model.gguf", "--dtype", "q4_0"))  # vocabulary: Q8_0
    kinds = {name: kind for name, (kind, _) in found.items()}
    assert kinds["model.embed_tokens.weight"] == kinds["lm_head.weight"] == "Q8_0"
    assert kinds["model.layers.1.mlp.down_proj.weight"] == "Q4_0"
    narrow = tmp_path / "narrow"  # rows of 96, and of 256 behind the MLP
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny-mistral", narrow], check=True, capture_output=True)
    words = refusal(narrow, tmp_path / "narrow.gguf", "--dtype", "q4_k")
    assert "tensor 'model.layers.0.self_attn.q_proj.weight' has rows of 96 elements; Q4_K takes multiples of 256" in words
    assert "Types for such rows: F32, F16, Q4_0, Q8_0, BF16" in words
    file = export(narrow, tmp_path / "narrow.gguf", "--dtype", "q4_k", "--fallback-dtype", "q8_0")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(file).tensors}
    assert kinds["blk.0.ffn_down.weight"] == "Q4_K" and kinds["blk.0.ffn_up.weight"] == kinds["token_embd.weight"] == "Q8_0"


def log_probabilities(model, *args):
    with SkeinServer(model, "--served-model-name", "m", *args) as server:
        body = json.dumps({"model": "m", "prompt": list(range(4, 44)), "max_tokens": 8, "temperature": 0, "ignore_eos": True,
                           "prompt_logprobs": 3, "return_token_ids": True}).encode()
        request = urllib.request.Request(server.url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            choice = json.load(response)["choices"][0]
        # The text of a row without a token differs.
        found = [{token: entry["logprob"] for token, entry in position.items()} for position in choice["prompt_logprobs"][1:]]
        return found, choice["token_ids"]


def test_a_file_has_the_bits_of_the_weights_that_are_packed(llama, tmp_path):
    """Q4_0 is what --quantization int4 makes of a directory whose output is the embedding, Q8_0 what q8_0 makes of it."""
    tied = tmp_path / "tied"
    shutil.copytree(llama, tied)
    tensors = read_safetensors(llama / "model.safetensors")
    write_safetensors(tied / "model.safetensors", {name: array for name, array in tensors.items() if name != "lm_head.weight"})
    config = json.loads((tied / "config.json").read_text())
    (tied / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    for model, dtype, options in ((llama, "f32", []), (tied, "q4_0", ["--quantization", "int4"]),
                                  (tied, "q8_0", ["--quantization", "q8_0"])):
        file = export(model, tmp_path / f"{dtype}.gguf", "--dtype", dtype, "--embedding-dtype", dtype)
        assert log_probabilities(file, "--dtype", "f32") == log_probabilities(model, "--dtype", "f32", *options)


def test_an_adapter_is_merged(llama, tmp_path):
    random = numpy.random.default_rng(6)
    a = random.standard_normal((2, WIDTH)).astype(numpy.float32)
    b = random.standard_normal((WIDTH, 2)).astype(numpy.float32)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}))
    name = "base_model.model.model.layers.1.self_attn.q_proj"
    write_safetensors(adapter / "adapter_model.safetensors", {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b})
    found = tensors_of(export(llama, tmp_path / "model.gguf", "--dtype", "f32", "--adapter", adapter))
    plain = read_safetensors(llama / "model.safetensors")
    weight = "model.layers.1.self_attn.q_proj.weight"
    assert numpy.abs(found[weight][1] - (plain[weight] + 2 * (b @ a))).max() < 1e-5
    assert numpy.array_equal(found["lm_head.weight"][1], plain["lm_head.weight"])


def with_tokenizer(name, folder, **config):
    shutil.copytree(MODELS / name, folder)
    add_tokenizer(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


@pytest.mark.parametrize("name, config", [
    ("llama-default", {}), ("llama-head-dim", {}), ("llama-yarn", {}), ("mistral", {}),
    ("qwen2-tied", {}), ("qwen2-yarn", {}), ("qwen3", {}), ("qwen3-tied", {}), ("qwen3-bf16", {}), ("gemma3", {"query_pre_attn_scalar": 16}),
    ("gemma", {}), ("gemma2", {"query_pre_attn_scalar": 16}), ("gemma2-large-caps", {"query_pre_attn_scalar": 16}),
    ("qwen3-moe-plain", {"norm_topk_prob": True, "num_experts_per_tok": 2}),
    ("llama-llama3", {"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                       "original_max_position_embeddings": 8192}})])
def test_families_keep_their_bits(tmp_path, name, config):
    folder = with_tokenizer(name, tmp_path / "model", **config)
    file = export(folder, tmp_path / "model.gguf", "--dtype", "f32")
    assert log_probabilities(file, "--dtype", "f32") == log_probabilities(folder, "--dtype", "f32")


def tokenize(model, texts, *args):
    run = subprocess.run([SKEIN_BIN, "tokenize", model, *args], capture_output=True, text=True, encoding="utf-8",
                         input="".join(json.dumps({"text": text}) + "\n" for text in texts), timeout=120)
    assert run.returncode == 0, run.stderr
    return [json.loads(line)["ids"] for line in run.stdout.splitlines()]


def around_tokenizer(tmp_path, folder, **options):
    """A model of a published tokenizer, and the file of it."""
    model = tmp_path / "model"
    subprocess.run([SKEIN_BIN, "model", "init", "--shape", "tiny-mistral", "--tokenizer", folder, model], check=True, capture_output=True)
    if options:
        path = model / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | options))
    return model, export(model, tmp_path / "model.gguf", "--dtype", "q8_0")


DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {
    "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}


@pytest.mark.parametrize("name, options, pre", [("gpt2", {}, "gpt-2"), ("qwen3", {}, "qwen2"), ("gpt2", {"pre_tokenizer": DIGITS}, "smollm")])
def test_byte_level_tokenizers_stay(tmp_path, name, options, pre):
    folder = needed(SHARED / "tokenizers" / name)
    model, file = around_tokenizer(tmp_path, folder, **options)
    assert gguf.GGUFReader(file).fields["tokenizer.ggml.pre"].contents() == pre
    texts = [json.loads(line)["text"] for line in (folder / "cases.jsonl").read_text().splitlines()]
    for args in ([], ["--special"]):
        assert tokenize(file, texts, *args) == tokenize(model, texts, *args)


def test_sentencepiece_tokenizers_stay(tmp_path):
    folder = needed(STORIES)
    cases = [json.loads(line) for line in (folder / "tokenizer_cases.jsonl").read_text().splitlines()]
    file = export(folder, tmp_path / "model.gguf", "--dtype", "f16")
    found = {key: field.contents() for key, field in gguf.GGUFReader(file).fields.items()}
    assert found["tokenizer.ggml.model"] == "llama" and found["tokenizer.ggml.add_bos_token"] is True
    for args, key in (([], "ids"), (["--special"], "ids_special")):
        assert tokenize(file, [case["text"] for case in cases], *args) == [case[key] for case in cases]


def changed_tokenizer(**changes):
    def change(folder):
        path = folder / "tokenizer.json"
        found = json.loads(path.read_text())
        for member, value in changes.items():
            (found if member in found else found["model"])[member] = value
        path.write_text(json.dumps(found))
    return change


def stripped(folder):
    path = folder / "tokenizer.json"
    found = json.loads(path.read_text())
    found["added_tokens"][0]["lstrip"] = True
    path.write_text(json.dumps(found))


def larger(folder):
    path = folder / "tokenizer.json"
    found = json.loads(path.read_text())
    found["model"]["vocab"]["zz"] = 128
    path.write_text(json.dumps(found))


REFUSED = {
    "windows": ("mistral-window", {}, None, "'sliding_window' is one that a GGUF file of the architecture llama cannot say"),
    "weights of experts": ("qwen3-moe-plain", {"norm_topk_prob": False}, None, "'norm_topk_prob' is one that"),
    "fused": ("phi3", {}, None, "'architectures' is Phi3ForCausalLM; GGUF is written of MistralForCausalLM, LlamaForCausalLM"),
    "biases": ("llama-biases", {}, None, "'attention_bias' is one that"),
    "yarn's numbers": ("llama-yarn-explicit", {}, None, "'rope_scaling' is one that"),
    "another Llama's frequencies": ("llama-llama3", {}, None, "is not the table of Llama 3.1 or 3.2"),
    "a scale of scores": ("gemma3", {}, None, "'query_pre_attn_scalar' is one that"),
    "no cap of scores": ("gemma2", {"query_pre_attn_scalar": 16, "attn_logit_softcapping": None}, None, "'attn_logit_softcapping' is one that"),
    "no cap of logits": ("gemma2", {"query_pre_attn_scalar": 16, "final_logit_softcapping": None}, None, "'final_logit_softcapping' is one that"),
    "quantized": ("llama-default", {"quantization_config": {"quant_method": "fp8"}}, None, "'quantization_config' is there"),
    "cuts": ("llama-default", {}, changed_tokenizer(pre_tokenizer={"type": "Whitespace"}), "'pre_tokenizer' with its normalizer is none that GGUF names: gpt-2, llama-bpe"),
    "composing": ("llama-default", {}, changed_tokenizer(normalizer={"type": "NFC"}), "'pre_tokenizer' with its normalizer is none"),
    "a flag": ("llama-default", {}, stripped, "'added_tokens' has '<pad>' with lstrip"),
    "too many tokens": ("llama-default", {}, larger, "token 'zz' has the id 128; the model has 128 rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_file_cannot_say_is_refused_by_name(tmp_path, name):
    model, config, change, words = REFUSED[name]
    folder = with_tokenizer(model, tmp_path / "model", **config)
    if change:
        change(folder)
    assert words in refusal(folder, tmp_path / "model.gguf")


def test_bad_requests_name_what_is_allowed(llama, tmp_path):
    file = tmp_path / "model.gguf"
    assert "--dtype: q5_k not in {f32,f16,q4_0,q8_0,q4_k,bf16}" in refusal(llama, file, "--dtype", "q5_k")
    assert "a model's directory a file, whose name ends with .gguf" in refusal(llama, tmp_path / "directory")
    encoder = ROOT / "tests/data/encoders/bert"
    assert "an encoder; GGUF is written of MistralForCausalLM" in refusal(encoder, file)
    export(llama, file)
    run = subprocess.run([SKEIN_BIN, "model", "convert", llama, file], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "is there; --force replaces it" in run.stderr
    export(llama, file, "--force")
    run = subprocess.run([SKEIN_BIN, "model", "convert", file, tmp_path / "back", "--dtype", "q8_0"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "--dtype is q8_0; a directory takes bf16 and f32" in run.stderr
    # A number that f16 has not.
    large = tmp_path / "large"
    shutil.copytree(llama, large)
    tensors = read_safetensors(llama / "model.safetensors")
    tensors["lm_head.weight"] = tensors["lm_head.weight"] * 1e7
    write_safetensors(large / "model.safetensors", tensors)
    assert "tensor 'lm_head.weight' holds a number beyond 65504" in refusal(large, tmp_path / "large.gguf", "--dtype", "f16")


def test_there_and_back_again(llama, tmp_path):
    file = export(llama, tmp_path / "model.gguf", "--dtype", "f32")
    export(file, tmp_path / "directory", "--dtype", "f32")
    back = read_safetensors(tmp_path / "directory/model.safetensors")
    for name, matrix in read_safetensors(llama / "model.safetensors").items():
        assert numpy.array_equal(back[name], matrix), name
    # A file may be written of a file, through its description in the cache.
    again = export(file, tmp_path / "again.gguf", "--dtype", "f32")
    assert {name: kind for name, (kind, _) in tensors_of(again).items()} == {name: "F32" for name in back}
    assert all(numpy.array_equal(tensors_of(again)[name][1], matrix) for name, matrix in back.items())
