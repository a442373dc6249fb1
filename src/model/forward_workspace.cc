#include "model/forward_workspace.h"

#include <algorithm>

namespace skein {
namespace {

// Hands out consecutive, aligned pieces of a buffer; of an empty one null, to learn the total.
class Carver {
 public:
  explicit Carver(AlignedBuffer& buffer) : buffer_(buffer) {}

  template <typename T>
  T* Take(size_t bytes) {
    const size_t begin = total_;
    total_ += (bytes + 63) / 64 * 64;
    return buffer_.size() == 0 ? nullptr : reinterpret_cast<T*>(buffer_.data() + begin);
  }
  size_t total() const { return total_; }

 private:
  AlignedBuffer& buffer_;
  size_t total_ = 0;
};

}  // namespace

ForwardWorkspace::ForwardWorkspace(const ModelWeights& weights, const ForwardLimits& limits)
    : memory(Bytes(weights, limits)) {
  size_t output_bytes = 0;
  Place(weights, limits, &output_bytes);
}

size_t ForwardWorkspace::Bytes(const ModelWeights& weights, const ForwardLimits& limits) {
  size_t output_bytes = 0;
  return ForwardWorkspace().Place(weights, limits, &output_bytes);
}

size_t ForwardWorkspace::OutputBytes(const ModelWeights& weights, const ForwardLimits& limits) {
  size_t output_bytes = 0;
  ForwardWorkspace().Place(weights, limits, &output_bytes);
  return output_bytes;
}

size_t ForwardWorkspace::Place(const ModelWeights& weights, const ForwardLimits& limits,
                               size_t* output_bytes) {
  const ModelConfig& config = weights.config;
  const size_t tokens = limits.max_tokens;
  const size_t hidden = config.hidden_size;
  const size_t q_width = size_t(config.num_heads) * config.head_dim;
  const size_t kv_width = size_t(config.num_kv_heads) * config.head_dim;
  const size_t padded = weights.intermediate_padded();
  const size_t t = SizeOf(weights.dtype);
  Carver carver(memory);
  x = carver.Take<float>(tokens * hidden * sizeof(float));
  h = carver.Take<std::byte>(tokens * hidden * t);
  qkv = carver.Take<float>(tokens * (q_width + 2 * kv_width) * sizeof(float));
  q = carver.Take<std::byte>(tokens * q_width * t);
  attn = carver.Take<std::byte>(tokens * q_width * t);
  up = carver.Take<float>(config.is_encoder() ? tokens * padded * sizeof(float) : 0);
  act = carver.Take<std::byte>(tokens * padded * t);
  const bool int8 = weights.matrix_dtype == DType::kInt8;
  const size_t rows = int8 ? std::max(tokens, size_t(limits.max_logit_rows)) : 0;
  quantized = carver.Take<int8_t>(rows * std::max({hidden, q_width, padded}));
  scales = carver.Take<float>(rows * sizeof(float));
  const size_t pass_bytes = carver.total();
  const int32_t vocab = config.head == Head::kLanguageModel ? config.vocab_size : 0;
  int32_t widest = config.hidden_size;
  for (const DenseWeights& dense : weights.embedding_dense) {
    widest = std::max(widest, dense.weight.n());
  }
  head_width = widest;
  output_width = std::max({vocab, widest, config.num_classes});
  logit_h = carver.Take<std::byte>(limits.max_logit_rows * head_width * t);
  logits = carver.Take<float>(limits.max_logit_rows * output_width * sizeof(float));
  *output_bytes = carver.total() - pass_bytes;
  return carver.total();
}

}  // namespace skein
