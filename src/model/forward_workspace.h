#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "model/weights.h"

namespace skein {

// What one forward pass may be asked for.
struct ForwardLimits {
  int32_t max_tokens = 0;       // of a batch
  int32_t max_logit_rows = 64;  // rows of logits, or other outputs, that exist at a time
};

// The activations of one pass, allocated once. "t": compute type.
struct ForwardWorkspace {
  ForwardWorkspace(const ModelWeights& weights, const ForwardLimits& limits);

  // What it would take.
  static size_t Bytes(const ModelWeights& weights, const ForwardLimits& limits);
  // The outputs' share of it: all that logits need beyond the pass, of however many tokens.
  static size_t OutputBytes(const ModelWeights& weights, const ForwardLimits& limits);

  AlignedBuffer memory;
  float* x = nullptr;         // [max_tokens, hidden]: the residual stream
  std::byte* h = nullptr;     // t [max_tokens, hidden]: after a norm
  float* qkv = nullptr;       // [max_tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  std::byte* q = nullptr;     // t [max_tokens, num_heads * head_dim]: rotated, rounded
  std::byte* attn = nullptr;  // t [max_tokens, num_heads * head_dim]
  float* up = nullptr;        // [max_tokens, intermediate_padded], of an encoder
  std::byte* act = nullptr;   // t [max_tokens, intermediate_padded]
  // Rows that int8 matrices are multiplied with; of int8 weights only. Whatever is multiplied next.
  int8_t* quantized = nullptr;  // [max_tokens, the widest of hidden, q and intermediate]
  float* scales = nullptr;      // [max_tokens]
  // t [max_logit_rows, head_width]; of all but embeddings the first [max_logit_rows, hidden].
  std::byte* logit_h = nullptr;
  float* logits = nullptr;  // [max_logit_rows, output_width]: outputs of any kind
  size_t output_width = 0;  // the widest of vocab, head_width and num_classes
  size_t head_width = 0;    // the widest of hidden and the Dense modules behind the pooling

 private:
  ForwardWorkspace() = default;
  // Points the members into `memory`, if there is any; returns the bytes that they take, of the
  // outputs alone in `*output_bytes`.
  size_t Place(const ModelWeights& weights, const ForwardLimits& limits, size_t* output_bytes);
};

}  // namespace skein
