#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kv_layout.h"
#include "model/config/config.h"

namespace skein {

// Where the operators that go chunk by chunk put a layer's outputs (q, the rows' own keys and
// values, the residual stream). The first two are for comparison only.
enum class ChunkOutputs : uint8_t {
  kCollected,     // each chunk's into memory of its own; copied together when all are there
  kPreallocated,  // into the whole output's memory at once
  kInPlace,       // and, where shapes allow, into that of the input: attention's output lies over
                  // q, the residual stream is added to where it is
};

// What one forward pass may be asked for, and how it uses memory.
struct ForwardLimits {
  int32_t max_tokens = 0;       // of a batch
  int32_t max_logit_rows = 64;  // rows of logits, or other outputs, that exist at a time
  // Tokens that the operators outside attention take at a time (hybrid prefilling; PrefillOnly,
  // section 4); 0: all of the batch. The wide activations are as long as that.
  int32_t chunk_tokens = 0;
  // KV blocks of one layer that the pass has of its own, for the part of its rows that their block
  // tables do not cover.
  int32_t max_own_blocks = 0;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  int32_t dense_width = 0;  // of the widest Dense module behind the pooling; 0: there is none
  bool int8 = false;        // of the weights

  int32_t chunk() const {
    return chunk_tokens > 0 && chunk_tokens < max_tokens ? chunk_tokens : max_tokens;
  }
};

// The activations of one pass, allocated once. "t": compute type. chunk: limits.chunk(). h, q, attn
// and act may lie in tiles (kernels/row_tiles.h): they have room for whole ones.
struct ForwardWorkspace {
  ForwardWorkspace(const ModelConfig& config, DType dtype, const ForwardLimits& limits);

  // What it would take.
  static size_t Bytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits);
  // The outputs' share of it: all that logits need beyond the pass, of however many tokens.
  static size_t OutputBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits);

  // Where outputs are not in place: x_out is x from here on.
  void EndLayer();

  AlignedBuffer memory;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  float* x = nullptr;         // [max_tokens, hidden]: the residual stream
  std::byte* h = nullptr;     // t [chunk, hidden]: after a norm
  std::byte* q = nullptr;     // t [max_tokens, num_heads * head_dim]: rotated, rounded
  std::byte* attn = nullptr;  // t [max_tokens, num_heads * head_dim]; in place: q
  float* up = nullptr;        // [chunk, intermediate_padded], of an encoder
  // t [chunk, intermediate_padded]; in tiles, what lies behind that stays 0: nothing else uses it.
  std::byte* act = nullptr;
  // Of a mixture of experts; slots: chunk * experts_per_token (model/forward/expert_routes.h).
  float* router = nullptr;          // [chunk, num_experts]
  float* router_exp = nullptr;      // [chunk, num_experts]
  std::byte* expert_in = nullptr;   // t [slots, hidden]
  std::byte* expert_act = nullptr;  // t [slots, expert_padded]
  float* expert_out = nullptr;      // [slots, hidden]
  std::byte* own_kv = nullptr;      // blocks [max_own_blocks] of one layer (KvLayout)
  size_t own_kv_bytes = 0;
  // Where chunks put their outputs: x, q and own_kv themselves unless those are collected or, for
  // x, not in place.
  float* x_out = nullptr;
  std::byte* q_out = nullptr;
  std::byte* own_kv_out = nullptr;
  // Rows that int8 matrices are multiplied with; of int8 weights only. Whatever is multiplied next.
  int8_t* quantized = nullptr;  // [chunk, the widest of hidden, q and intermediate]
  float* scales = nullptr;      // [chunk]
  // t [max_logit_rows, head_width]; of all but embeddings the first [max_logit_rows, hidden].
  std::byte* logit_h = nullptr;
  float* logits = nullptr;  // [max_logit_rows, output_width]: outputs of any kind
  size_t output_width = 0;  // the widest of vocab, head_width and num_classes
  size_t head_width = 0;    // the widest of hidden and the Dense modules behind the pooling

 private:
  ForwardWorkspace() = default;
  // Points the members into `memory`, if there is any; returns the bytes that they take, of the
  // outputs alone in `*output_bytes`.
  size_t Place(const ModelConfig& config, DType dtype, const ForwardLimits& limits,
               size_t* output_bytes);
};

}  // namespace skein
