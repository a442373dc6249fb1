"""Model directories as people find them: every variation that published ones have, made of one model. Each gives the
tokens of the plain directory, or is refused with a message that names the field or the file."""
import json
import os
import shutil
import subprocess

import numpy
import pytest

from safetensors_file import read_raw, write_raw
from skein_server import SKEIN_BIN


def config(**changes):
    """Fields of config.json that are set; None stands for JSON's null, DROP for an absent field."""
    return json_file("config.json", **changes)


DROP = object()


def json_file(name, **changes):
    def change(folder):
        path = folder / name
        found = json.loads(path.read_text()) if path.exists() else {}
        found = {key: value for key, value in (found | changes).items() if value is not DROP}
        path.write_text(json.dumps(found, indent=2))
    return change


def text(name, edit):
    """The bytes of a file, edited."""
    def change(folder):
        (folder / name).write_bytes(edit((folder / name).read_bytes()))
    return change


def without(*names):
    def change(folder):
        for name in names:
            (folder / name).unlink()
    return change


def new_file(name, content):
    def change(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return change


def both(*changes):
    def change(folder):
        for one in changes:
            one(folder)
    return change


def tensors_of(folder):
    return read_raw(folder / "model.safetensors")


def more_tensors(**tensors):
    """Adds arrays beside the weights; __ in a name is a point."""
    def change(folder):
        entries = tensors_of(folder)
        for name, array in tensors.items():
            dtype = {"float32": "F32", "float64": "F64", "int64": "I64"}[array.dtype.name]
            entries[name.replace("__", ".")] = (dtype, array.shape, array.tobytes())
        write_raw(folder / "model.safetensors", entries, {"format": "pt"})
    return change


def tied_head_in_file(folder):
    entries = tensors_of(folder)
    entries["lm_head.weight"] = entries["model.embed_tokens.weight"]
    write_raw(folder / "model.safetensors", entries)


def shards(folder):
    entries = tensors_of(folder)
    names = sorted(entries)
    parts = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for part, chosen in parts.items():
        write_raw(folder / part, {name: entries[name] for name in chosen}, {"format": "pt"})
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"total_size": 1040128, "total_parameters": 260032},
         "weight_map": {name: part for part, chosen in parts.items() for name in chosen}}))


def links(folder):
    """A hub cache: snapshots of links into blobs."""
    blobs = folder / "blobs"
    blobs.mkdir()
    for path in list(folder.iterdir()):
        if path.is_file():
            path.rename(blobs / path.name)
            path.symlink_to(os.path.join("blobs", path.name))


PLAIN_TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
TOKEN = {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
PLAIN_ROPE = {"rope_theta": 10000.0, "rope_type": "default"}

LOADS = {
    "dtype beside torch_dtype": config(dtype="float32"),
    "dtype alone": config(torch_dtype=DROP, dtype="float32"),
    "no dtype": config(torch_dtype=DROP),
    "no rope_theta (Llama 2)": config(rope_theta=DROP),
    "rope_theta is an integer": config(rope_theta=10000),
    "rope_scaling absent": config(rope_scaling=DROP),
    "rope_scaling empty": config(rope_scaling={}),
    "rope_scaling default": config(rope_scaling={"rope_type": "default"}),
    "rope_parameters": config(rope_theta=DROP, rope_scaling=DROP, rope_parameters=PLAIN_ROPE),
    "rope_parameters beside rope_theta": config(rope_parameters=PLAIN_ROPE),
    "eos list": config(eos_token_id=[2, 0]),
    "eos null": config(eos_token_id=None),
    "bos and pad null": config(bos_token_id=None, pad_token_id=None),
    "pad is -1": config(pad_token_id=-1),
    "sliding_window null": config(sliding_window=None),
    "sliding_window beyond the prompt": config(sliding_window=128, model_type="mistral",
                                               architectures=["MistralForCausalLM"]),
    "sliding_window of the context": config(sliding_window=512, use_sliding_window=False, max_window_layers=5),
    "quantization_config null": config(quantization_config=None),
    "quantization_config empty": config(quantization_config={}),
    "dtype auto": config(torch_dtype="auto"),
    "bos is -1": config(bos_token_id=-1),
    "a byte order mark": both(text("config.json", lambda b: b"\xef\xbb\xbf" + b),
                              text("tokenizer_config.json", lambda b: b"\xef\xbb\xbf" + b)),
    "head_dim null": config(head_dim=None),
    "head_dim absent": config(head_dim=DROP),
    "biases absent": config(attention_bias=DROP, mlp_bias=DROP),
    "fields of training": config(_name_or_path="x/y", transformers_version="4.99.0.dev0", auto_map={"AutoModel": "m.M"},
                                 attn_implementation="sdpa", _attn_implementation_autoset=True, unsloth_fixed=True,
                                 task_specific_params=None, id2label={"0": "LABEL_0"}, torchscript=False, num_labels=2),
    "max position far beyond 32 bits in the tokenizer": json_file("tokenizer_config.json",
                                                                  model_max_length=1000000000000000019884624838656),
    "CRLF": both(text("config.json", lambda b: b.replace(b"\n", b"\r\n")),
                 text("tokenizer_config.json", lambda b: b.replace(b"\n", b"\r\n"))),
    "no generation_config.json": without("generation_config.json"),
    "generation_config with an eos list": json_file("generation_config.json", eos_token_id=[2, 0], temperature=0.6, top_p=None,
                                                    do_sample=True, transformers_version="4.1"),
    "generation_config with nulls": json_file("generation_config.json", temperature=None, eos_token_id=None),
    "no tokenizer_config.json": without("tokenizer_config.json"),
    "special_tokens_map.json": new_file("special_tokens_map.json", json.dumps(
        {"bos_token": TOKEN, "eos_token": "</s>", "unk_token": "<unk>", "additional_special_tokens": ["<s>"]})),
    "tokens as objects": json_file("tokenizer_config.json", bos_token=TOKEN, eos_token=TOKEN | {"content": "</s>"}),
    "null tokens": json_file("tokenizer_config.json", bos_token=None, unk_token=None),
    "added_tokens_decoder absent": json_file("tokenizer_config.json", added_tokens_decoder=DROP),
    "added_tokens_decoder empty": json_file("tokenizer_config.json", added_tokens_decoder={}),
    "extra_special_tokens": json_file("tokenizer_config.json", extra_special_tokens={}, additional_special_tokens=None,
                                      chat_template=None, processor_class="P", split_special_tokens=False),
    "a class of another name": json_file("tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast"),
    "inv_freq in the file": more_tensors(model__layers__0__self_attn__rotary_emb__inv_freq=numpy.ones(4, numpy.float32)),
    "buffers of 64 bits": more_tensors(model__position_ids=numpy.arange(8), model__scale=numpy.ones(1)),
    "lm_head beside tied weights": tied_head_in_file,
    "shards": shards,
    "one file beside an index": new_file("model.safetensors.index.json", '{"weight_map": {}}'),
    "links of a hub cache": links,
    "files that nobody reads": both(new_file("README.md", "x"), new_file("onnx/model.onnx", "x"),
                                    new_file("merges.txt", "x"), new_file(".gitattributes", "x")),
}

TEMPLATES = {
    "a text": json_file("tokenizer_config.json", chat_template=PLAIN_TEMPLATE),
    "named ones": json_file("tokenizer_config.json", chat_template=[
        {"name": "tool_use", "template": "{{ 1 }}"}, {"name": "default", "template": PLAIN_TEMPLATE}]),
    "chat_template.jinja": new_file("chat_template.jinja", PLAIN_TEMPLATE),
    "chat_template.jinja before the text": both(json_file("tokenizer_config.json", chat_template="{{ 1 }}"),
                                                new_file("chat_template.jinja", PLAIN_TEMPLATE)),
    "additional_chat_templates": both(new_file("chat_template.jinja", PLAIN_TEMPLATE),
                                      new_file("additional_chat_templates/rag.jinja", "{{ 1 }}")),
}

REFUSED = {
    "no config.json": (without("config.json"), "config.json"),
    "no tokenizer.json": (without("tokenizer.json"), "tokenizer.json"),
    "PyTorch's format alone": (both(without("model.safetensors"), new_file("pytorch_model.bin", "x")), "model.safetensors"),
    "another architecture": (config(architectures=["MambaForCausalLM"], model_type="mamba"), "MambaForCausalLM"),
    "an unknown quantisation": (config(quantization_config={"quant_method": "bitsandbytes"}), "quantization_config"),
    "another activation": (config(hidden_act="relu2"), "hidden_act"),
    "an unknown rope": (config(rope_scaling={"rope_type": "su", "factor": 2.0}), "rope_type"),
    "a list for a number": (config(hidden_size=[64]), "hidden_size"),
    "a tensor of another shape": (config(intermediate_size=176), "shape"),
    "a lost tensor": (config(num_hidden_layers=6), "model.layers.5."),
    "not JSON": (text("config.json", lambda b: b[:-20]), "config.json"),
    "an index to a lost shard": (both(shards, without("model-00002-of-00002.safetensors")), "model-00002-of-00002.safetensors"),
    "a truncated file": (text("model.safetensors", lambda b: b[:-1]), "model.safetensors"),
}


def run(folder, *args):
    return subprocess.run([SKEIN_BIN, "run", folder, "--max-tokens", "12", "--temperature", "0", *args],
                          capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def expected(stories):
    found = run(stories, "--prompt", "Once upon a time")
    assert found.returncode == 0 and found.stdout.strip()
    return found.stdout


@pytest.fixture
def folder(stories, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(stories, copy, ignore=shutil.ignore_patterns("golden*", "tok*bin", "tokenizer_cases*"))
    for path in copy.rglob("*"):
        path.chmod(0o644)
    copy.chmod(0o755)
    return copy


@pytest.mark.parametrize("name", LOADS)
def test_it_loads(folder, expected, name):
    LOADS[name](folder)
    found = run(folder, "--prompt", "Once upon a time")
    assert found.returncode == 0, found.stderr
    assert found.stdout == expected


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_chat_template_is_found(folder, expected, name):
    TEMPLATES[name](folder)
    found = run(folder, "Once upon a time")
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == expected.strip()


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name(folder, name):
    change, word = REFUSED[name]
    change(folder)
    found = run(folder, "--prompt", "Once upon a time")
    assert found.returncode == 1 and word in found.stderr, found.stderr
    assert not found.stdout
