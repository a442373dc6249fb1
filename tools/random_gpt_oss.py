#!/usr/bin/env python3
"""Write a GGUF file of gpt-oss-20b's shape with random weights: experts in MXFP4, the other matrices in Q8_0.

    .venv/bin/python tools/random_gpt_oss.py FILE.gguf [--layers 4]

The shape is that of the published model's config; each token has a name of its own, which no text contains. Needs the
packages gguf and numpy. The same file is written each time.
"""
import argparse
import pathlib

import gguf
import numpy

HIDDEN, MLP, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, VOCABULARY = 2880, 2880, 64, 8, 64, 32, 201088
Q8_0, MXFP4 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.MXFP4


def add_config(writer, layers):
    writer.add_block_count(layers)
    writer.add_context_length(131072)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(4)
    writer.add_expert_feed_forward_length(MLP)
    writer.add_sliding_window(128)
    writer.add_rope_freq_base(150000.0)
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(32.0)
    writer.add_rope_scaling_orig_ctx_len(4096)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-4o")
    writer.add_token_list(["a", "b", "ab", *(f"<{i}>" for i in range(3, VOCABULARY))])
    writer.add_token_types([1] * (VOCABULARY - 1) + [3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(199998)
    writer.add_eos_token_id(200002)


class Tensors:
    """Random tensors, added to a writer one by one."""

    def __init__(self, writer):
        self.writer, self.random = writer, numpy.random.default_rng(20)

    def vector(self, name, *shape, mean=0.0, deviation=0.1):
        self.writer.add_tensor(name, (mean + deviation * self.random.standard_normal(shape)).astype(numpy.float32))

    def q8(self, name, rows, columns):
        """Numbers in [-127, 127] times a scale, with a deviation of 1 / sqrt(columns)."""
        blocks = self.random.integers(0, 255, (rows, columns // 32, 34), dtype=numpy.uint8) - numpy.uint8(127)
        scale = numpy.float16(columns ** -0.5 / 73.6)
        blocks[..., :2] = numpy.frombuffer(scale.tobytes(), numpy.uint8)
        self.writer.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=Q8_0)

    def mxfp4(self, name, rows, columns):
        """Any of MXFP4's numbers, whose deviation is 2.9, times a power of two near 1 / (2.9 sqrt(columns))."""
        blocks = self.random.integers(0, 256, (EXPERTS, rows, columns // 32, 17), dtype=numpy.uint8)
        blocks[..., 0] = 119 + (blocks[..., 0] & 1)
        self.writer.add_tensor(name, blocks.reshape(EXPERTS, rows, -1), raw_dtype=MXFP4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=24)
    args = parser.parse_args()
    writer = gguf.GGUFWriter(args.file, "gpt-oss")
    add_config(writer, args.layers)
    tensors = Tensors(writer)
    tensors.q8("token_embd.weight", VOCABULARY, HIDDEN)
    tensors.q8("output.weight", VOCABULARY, HIDDEN)
    tensors.vector("output_norm.weight", HIDDEN, mean=1.0)
    for layer in range(args.layers):
        at = f"blk.{layer}."
        for norm in ("attn_norm", "post_attention_norm"):
            tensors.vector(f"{at}{norm}.weight", HIDDEN, mean=1.0)
        for matrix, rows, columns in (("attn_q", HEADS * HEAD_DIM, HIDDEN), ("attn_k", KV_HEADS * HEAD_DIM, HIDDEN),
                                      ("attn_v", KV_HEADS * HEAD_DIM, HIDDEN), ("attn_output", HIDDEN, HEADS * HEAD_DIM)):
            tensors.q8(f"{at}{matrix}.weight", rows, columns)
            tensors.vector(f"{at}{matrix}.bias", rows)
        tensors.vector(at + "attn_sinks.weight", HEADS, deviation=1.0)
        tensors.vector(at + "ffn_gate_inp.weight", EXPERTS, HIDDEN, deviation=0.02)
        tensors.vector(at + "ffn_gate_inp.bias", EXPERTS)
        for matrix, rows, columns in (("gate", MLP, HIDDEN), ("up", MLP, HIDDEN), ("down", HIDDEN, MLP)):
            tensors.mxfp4(f"{at}ffn_{matrix}_exps.weight", rows, columns)
            tensors.vector(f"{at}ffn_{matrix}_exps.bias", EXPERTS, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
