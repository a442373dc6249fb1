"""GGUF files of Qwen2-MoE, OLMoE, Mixtral, Qwen3.5-MoE and Qwen3-Next, as llama.cpp's converter writes them: the weights and
the answers are those of the directories."""
import json
import shutil
import subprocess

import gguf
import numpy
import pytest

import qwen35_gguf
from qwen35_gguf import add_sizes, add_vocabulary
from safetensors_file import read_safetensors, widened, write_safetensors
from skein_server import ROOT, SKEIN_BIN
from test_gguf import finish
from test_gguf_export import add_tokenizer, export, refusal
from test_gguf_qwen35 import converted, distance, log_probabilities

Type = gguf.GGMLQuantizationType
# The directory, the file's architecture, and whether Skein writes it, too.
MODELS = {"qwen2-moe": "qwen2moe", "olmoe": "olmoe", "mixtral": "llama", "qwen3.5-moe": "qwen35moe", "qwen3-next": "qwen3next"}
WRITTEN = ["qwen2-moe", "olmoe", "mixtral"]
LINEAR = ("qwen35moe", "qwen3next")
EXPERTS = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
           "w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps"}
MIXTURE = {"mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
           "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
           "mlp.shared_expert.down_proj": "ffn_down_shexp", "linear_attn.in_proj_ba": "ssm_ba"}
PARTS = {part: name for part, name in qwen35_gguf.PARTS.items() if not part.startswith("linear_attn")} | {
    "post_attention_layernorm": "ffn_norm"} | MIXTURE
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
         "lm_head.weight": "output.weight"}
PROMPT = [(7 * i * i + 3 * i) % 120 for i in range(90)]


@pytest.fixture(params=MODELS)
def model(request, tmp_path):
    """A directory in which every layer has experts, and the file's architecture."""
    return with_experts_everywhere(request.param, tmp_path), MODELS[request.param]


def with_experts_everywhere(name, tmp_path):
    made = tmp_path / name
    shutil.copytree(ROOT / "tests/data/models" / name, made)
    config = json.loads((made / "config.json").read_text())
    dense = config.get("mlp_only_layers")
    if not dense:
        return made
    kept = [layer for layer in range(config["num_hidden_layers"]) if layer not in dense]
    tensors = {}
    for weight, values in read_safetensors(made / "model.safetensors").items():
        parts = weight.split(".")
        if parts[1] == "layers" and int(parts[2]) not in kept:
            continue
        if parts[1] == "layers":
            parts[2] = str(kept.index(int(parts[2])))
        tensors[".".join(parts)] = values
    write_safetensors(made / "model.safetensors", tensors)
    config |= {"num_hidden_layers": len(kept), "mlp_only_layers": []}
    if "full_attention_interval" in config:
        config["full_attention_interval"] -= len(dense)
    (made / "config.json").write_text(json.dumps(config))
    return made


def stacked(tensors):
    """The weights, with the matrices of a layer's experts as one."""
    experts = {}
    for name, values in tensors.items():
        if ".experts." not in name:
            yield name, values
            continue
        layer, (number, part, _) = name.split(".")[2], name.split(".experts.")[1].split(".")
        experts.setdefault(f"blk.{layer}.{EXPERTS[part]}.weight", {})[int(number)] = values
    for tensor, matrices in experts.items():
        yield tensor, numpy.stack([matrices[i] for i in range(len(matrices))])


def split_heads(values, config):
    """Qwen3-Next's matrix as that of q, k, v and that of z."""
    keys, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    k, v = config["linear_key_head_dim"], config["linear_value_head_dim"] * heads // keys
    parts = numpy.split(values.reshape(keys, 2 * k + 2 * v, -1), [k, 2 * k, 2 * k + v], axis=1)
    q, k, v, z = (part.reshape(-1, values.shape[1]) for part in parts)
    return numpy.concatenate([q, k, v]), z


def interleaved(matrix, heads):
    """Rows of q or k of the Llama family: (head, half, j) of the model are (head, j, half) of the file."""
    return matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(matrix.shape)


def in_file(name, values, config, architecture):
    """(name, values) of the tensors in the file that have this weight."""
    if name.startswith("blk."):
        return [(name, values)]
    if name in WHOLE:
        return [qwen35_gguf.in_file(name, values, config) if architecture in LINEAR else (WHOLE[name], values)]
    part = name.removesuffix(".weight").split(".", 3)[-1]
    at = f"blk.{name.split('.')[2]}."
    if part == "mlp.shared_expert_gate":
        values = values[0]
    if part == "linear_attn.in_proj_qkvz" and config.get("fused"):
        return [(at + "ssm_in.weight", values)]
    if part == "linear_attn.in_proj_qkvz":
        qkv, z = split_heads(values, config)
        return [(at + "attn_qkv.weight", qkv), (at + "attn_gate.weight", z)]
    if part == "linear_attn.conv1d" and architecture == "qwen3next":
        return [(at + "ssm_conv1d.weight", values[:, 0, :])]
    if part in MIXTURE:
        return [(f"{at}{MIXTURE[part]}.weight", values)]
    if architecture in LINEAR:
        if architecture == "qwen3next":  # the heads of v keep their order
            config = config | {"linear_num_key_heads": config["linear_num_value_heads"]}
        return [qwen35_gguf.in_file(name, values, config)]
    if architecture == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = config["num_attention_heads" if part.endswith("q_proj") else "num_key_value_heads"]
        values = interleaved(values, heads)
    if part.endswith(".bias"):
        return [(f"{at}{PARTS[part.removesuffix('.bias')]}.bias", values)]
    return [(f"{at}{PARTS[part]}.weight", values)]


def add_entries(writer, config, architecture):
    sizes = config if "intermediate_size" in config else config | {"intermediate_size": 1}  # qwen35moe has none
    add_sizes(writer, sizes)
    writer.add_expert_count(config.get("num_local_experts") or config["num_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    rope = config.get("rope_parameters") or config
    writer.add_rope_freq_base(rope["rope_theta"])
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1)))
    if architecture not in LINEAR:
        return
    for name, value in (("ssm.conv_kernel", config["linear_conv_kernel_dim"]),
                        ("ssm.inner_size", config["linear_value_head_dim"] * config["linear_num_value_heads"]),
                        ("ssm.state_size", config["linear_key_head_dim"]),
                        ("ssm.time_step_rank", config["linear_num_value_heads"]),
                        ("ssm.group_count", config["linear_num_key_heads"]),
                        ("full_attention_interval", config["full_attention_interval"])):
        writer.add_uint32(f"{architecture}.{name}", value)


def write_mixture(folder, path, architecture, kind=Type.F32, **changed):
    """Matrices whose rows are no whole blocks of `kind` stay in f32, and so do routers, gates and convolutions."""
    config = json.loads((folder / "config.json").read_text()) | changed
    writer = gguf.GGUFWriter(path, architecture)
    add_entries(writer, config, architecture)
    add_vocabulary(writer, folder, config["vocab_size"])
    tensors = {name: widened(values) for name, values in read_safetensors(folder / "model.safetensors").items()}
    for name, values in stacked(tensors):
        for tensor, data in in_file(name, values, config, architecture):
            data = numpy.ascontiguousarray(data, dtype=numpy.float32)
            stays = data.ndim == 1 or "ffn_gate_inp" in tensor or "conv1d" in tensor or kind == Type.F32
            if stays or data.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] != 0:
                writer.add_tensor(tensor, data)
            else:
                writer.add_tensor(tensor, gguf.quants.quantize(data, kind), raw_dtype=kind)
    finish(writer)
    return path


def test_weights_are_those_of_the_directory(model, tmp_path):
    folder, architecture = model
    out = converted(write_mixture(folder, tmp_path / "m.gguf", architecture), tmp_path / "out")
    found, expected = read_safetensors(out / "model.safetensors"), read_safetensors(folder / "model.safetensors")
    assert found.keys() == expected.keys()
    for name, values in found.items():
        one = widened(expected[name])
        if architecture in LINEAR and name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            one = one + numpy.float32(1) - numpy.float32(1)
        if name.endswith("A_log"):  # through exp and log
            assert numpy.allclose(values, one, rtol=3e-7, atol=3e-7), name
        else:
            assert numpy.array_equal(values, one), name
    config = json.loads((out / "config.json").read_text())
    assert not [member for member in config if "tiled" in member or "split" in member]


@pytest.mark.parametrize("kind", [Type.F32, Type.Q8_0])
def test_answers_are_those_of_the_directory(model, tmp_path, kind):
    folder, architecture = model
    file = write_mixture(folder, tmp_path / "m.gguf", architecture, kind)
    out = converted(file, tmp_path / "out")
    exact = log_probabilities(out, "--dtype", "f32", prompt=PROMPT)
    wide = log_probabilities(file, "--dtype", "f32", "--quantization", "none", prompt=PROMPT)
    if architecture == "qwen35moe":  # sums over the heads of v have the file's order
        assert distance(exact, wide) < 1e-5
    else:
        assert wide == exact
    if kind != Type.F32:  # nearer than whole rows of int8
        packed = log_probabilities(file, "--dtype", "f32", prompt=PROMPT)
        rows = log_probabilities(out, "--dtype", "f32", "--quantization", "int8", prompt=PROMPT)
        assert 0 < distance(exact, packed) < distance(exact, rows)


def test_the_first_files_of_qwen3_next_have_the_published_matrix(tmp_path):
    folder = with_experts_everywhere("qwen3-next", tmp_path)
    split, fused = (write_mixture(folder, tmp_path / f"{i}.gguf", "qwen3next", fused=i == 1) for i in range(2))
    assert "blk.0.ssm_in.weight" in {tensor.name for tensor in gguf.GGUFReader(fused).tensors}
    answers = [log_probabilities(file, "--dtype", "f32", prompt=PROMPT) for file in (split, fused)]
    assert answers[0] == answers[1]
    out, other = (read_safetensors(converted(file, tmp_path / file.stem) / "model.safetensors") for file in (split, fused))
    assert out.keys() == other.keys() and all(numpy.array_equal(out[name], other[name]) for name in out)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_written_file_is_the_converters(name, tmp_path):
    folder = with_experts_everywhere(name, tmp_path)
    add_tokenizer(folder)
    written = export(folder, tmp_path / "written.gguf", "--dtype", "f32")
    made = write_mixture(folder, tmp_path / "m.gguf", MODELS[name])
    found, expected = (gguf.GGUFReader(file) for file in (written, made))
    tensors = {tensor.name: tensor for tensor in found.tensors}
    assert tensors.keys() == {tensor.name for tensor in expected.tensors}
    for tensor in expected.tensors:
        assert list(tensors[tensor.name].shape) == list(tensor.shape), tensor.name
        assert numpy.array_equal(tensors[tensor.name].data, tensor.data), tensor.name
    for key, field in expected.fields.items():
        if key.startswith(MODELS[name] + "."):
            assert found.fields[key].contents() == pytest.approx(field.contents()), key
    back, weights = (read_safetensors(at / "model.safetensors") for at in (converted(written, tmp_path / "back"), folder))
    assert back.keys() == weights.keys() and all(numpy.array_equal(back[name], weights[name]) for name in back)


def test_what_a_file_cannot_say_is_not_written(tmp_path):
    folder = with_experts_everywhere("qwen2-moe", tmp_path)
    add_tokenizer(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"norm_topk_prob": True}))
    assert "'norm_topk_prob' is one that a GGUF file of the architecture qwen2moe cannot say" in refusal(folder, tmp_path / "m.gguf")
    for name, architecture in (("qwen3.5-moe", "Qwen3_5MoeForCausalLM"), ("qwen3-next", "Qwen3NextForCausalLM")):
        assert f"'architectures' is {architecture}" in refusal(ROOT / "tests/data/models" / name, tmp_path / "m.gguf")


def test_a_file_without_the_size_of_its_experts_is_refused(tmp_path):
    folder = with_experts_everywhere("qwen2-moe", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    del config["shared_expert_intermediate_size"]
    (folder / "config.json").write_text(json.dumps(config))
    file = write_mixture(folder, tmp_path / "m.gguf", "qwen2moe")
    done = subprocess.run([SKEIN_BIN, "model", "info", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "qwen2moe.expert_shared_feed_forward_length' is missing" in done.stderr
