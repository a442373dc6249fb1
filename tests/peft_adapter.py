"""Random LoRA adapters, as PEFT lays them out, for the tests."""
import json

import numpy

from safetensors_file import write_safetensors

RANK = 4


def write_adapter(folder, config, seed, modules):
    """A random adapter for a Llama of that config.json."""
    random = numpy.random.default_rng(seed)
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    shapes = {"self_attn.q_proj": (heads * head_dim, hidden),
              "self_attn.v_proj": (config["num_key_value_heads"] * head_dim, hidden),
              "self_attn.o_proj": (hidden, heads * head_dim),
              "mlp.up_proj": (config["intermediate_size"], hidden),
              "mlp.down_proj": (hidden, config["intermediate_size"])}
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for module in modules:
            rows, columns = shapes[module]
            name = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{name}.lora_A.weight"] = random.normal(0, 0.2, (RANK, columns))
            tensors[f"{name}.lora_B.weight"] = random.normal(0, 0.2, (rows, RANK))
    folder.mkdir()
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "bias": "none",
         "target_modules": [m.split(".")[1] for m in modules]}))
    return folder
