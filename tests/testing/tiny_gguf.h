#pragma once

#include <string>
#include <vector>

#include "testing/gguf_builder.h"

namespace skein::testing {

// A Llama of one layer as a GGUF file, in f32: width 8, two heads of 4, one for keys and values,
// MLP 16, eight tokens. Element i of every tensor is i, so that rows can be told apart.
class TinyGguf {
 public:
  static constexpr uint32_t kWidth = 8, kMlp = 16, kTokens = 8;

  std::string architecture = "llama", pre = "smollm", tokenizer = "gpt2";
  std::vector<std::string> tokens = {"<end>", "a", "b", "ab", "1", "2", "\u0120", "<user>"};
  std::vector<uint32_t> types = {3, 1, 1, 1, 1, 1, 1, 4};
  bool tied = true;
  uint64_t q_rows = kWidth;
  std::string without;  // a tensor that is left out
  GgufBuilder builder;  // may have more entries

  std::string Build() {
    Metadata();
    Tensor("token_embd.weight", {kWidth, kTokens});
    Tensor("output_norm.weight", {kWidth});
    if (!tied) Tensor("output.weight", {kWidth, kTokens});
    Tensor("blk.0.attn_norm.weight", {kWidth});
    Tensor("blk.0.attn_q.weight", {kWidth, q_rows});
    Tensor("blk.0.attn_k.weight", {kWidth, kWidth / 2});
    Tensor("blk.0.attn_v.weight", {kWidth, kWidth / 2});
    Tensor("blk.0.attn_output.weight", {kWidth, kWidth});
    Tensor("blk.0.ffn_norm.weight", {kWidth});
    Tensor("blk.0.ffn_gate.weight", {kWidth, kMlp});
    Tensor("blk.0.ffn_up.weight", {kWidth, kMlp});
    Tensor("blk.0.ffn_down.weight", {kMlp, kWidth});
    return builder.Build();
  }

 private:
  void Metadata() {
    builder.Text("general.architecture", architecture)
        .Int("llama.block_count", 1)
        .Int("llama.context_length", 64)
        .Int("llama.embedding_length", kWidth)
        .Int("llama.feed_forward_length", kMlp)
        .Int("llama.attention.head_count", 2)
        .Int("llama.attention.head_count_kv", 1)
        .Float("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .Text("tokenizer.ggml.model", tokenizer)
        .Text("tokenizer.ggml.pre", pre)
        .Texts("tokenizer.ggml.tokens", tokens)
        .Ints("tokenizer.ggml.token_type", types)
        .Texts("tokenizer.ggml.merges", {"a b"})
        .Int("tokenizer.ggml.eos_token_id", 0)
        .Text("tokenizer.chat_template", "{{ messages[0]['content'] }}");
  }
  void Tensor(const std::string& name, const std::vector<uint64_t>& dims) {
    if (name == without) return;
    uint64_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    std::string data;
    for (uint64_t i = 0; i < count; ++i) data += GgufBuilder::Bytes(static_cast<float>(i));
    builder.Tensor(name, dims, 0, data);
  }
};

}  // namespace skein::testing
