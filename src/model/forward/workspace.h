#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "model/config/config.h"

namespace skein {

// The memory of a layer's outputs (q, the rows' own keys and values, the residual stream) with
// operators that work chunk by chunk. kCollected and kPreallocated exist for comparison only.
enum class ChunkOutputs : uint8_t {
  kCollected,     // each chunk in its own memory; copied together at the end
  kPreallocated,  // each chunk directly in the memory of the whole output
  // As kPreallocated, but also in the memory of the input if shapes allow: attention's output is in
  // the memory of q, and the residual stream is added to in place.
  kInPlace,
};

// The limits of a forward pass, and the way in which it uses memory.
struct ForwardLimits {
  int32_t max_tokens = 0;       // of a batch
  int32_t max_logit_rows = 64;  // most rows of logits, or other outputs, at a time
  // Tokens of a chunk for the operators outside attention (hybrid prefilling; PrefillOnly, section
  // 4); 0: the whole batch. The wide activations have this many rows.
  int32_t chunk_tokens = 0;
  // KV blocks of one layer that the pass itself has, for tokens beyond the rows' block tables.
  int32_t max_own_blocks = 0;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  int32_t dense_width = 0;  // of the widest Dense module after the pooling; 0: there is none
  bool int8 = false;        // whether products take int8 rows: with weights of int8 or of blocks
  bool int8_kv = false;     // whether keys and values are in int8
  int32_t lora_rank = 0;    // of the widest change of a product; 0: there are no adapters
  // Whether another device computes the layers (ForwardPass::BeginOutputs). The activations are
  // then those of the outputs.
  bool outputs_alone = false;

  int32_t chunk() const {
    return chunk_tokens > 0 && chunk_tokens < max_tokens ? chunk_tokens : max_tokens;
  }
};

// The rows of a compact head besides those of the options: the question's type and the summary.
inline constexpr int32_t kCompactExtraRows = 2;
// The most rows of a compact head that exist at the same time: those of the longest question.
int32_t CompactRowsMax(const ForwardLimits& limits);

// The activations of a compact head, in f32. width: config.decision.compact_width.
struct CompactHeadRows {
  float* states = nullptr;  // [rows, hidden]: the states that the head reads
  float* x = nullptr;       // [rows, width]: the residual stream
  float* h = nullptr;       // [rows, width]: after a norm
  float* wide = nullptr;    // [rows, 4 * width]: q, k and v, the MLP's rows, or the two projections
  std::byte* kv = nullptr;  // blocks of one layer (CompactKvLayout)
};
// The keys and values of a chunk's questions. Each question begins a new block.
KvLayout CompactKvLayout(const ModelConfig& config, const ForwardLimits& limits);

// The activations of a joint head for one row of the batch, in f32. options: the most options of a
// row, which is also the most questions. width: config.decision.joint.width.
struct JointHeadRows {
  float* memory = nullptr;     // [max_tokens, width]: the prompt, as layers read it
  float* memory_h = nullptr;   // [max_tokens, width]: after a norm
  float* memory_kv = nullptr;  // [max_tokens, 2 * width]
  std::byte* kv = nullptr;     // blocks of one layer (JointKvLayout)
  // [1 + 3 * options, hidden]: the state of the last token, and the means of the questions, of the
  // options, and of the options' rows of the output matrix.
  float* spans = nullptr;
  float* last = nullptr;     // [width]: the product of the last token's state
  float* options = nullptr;  // [options, width]
  float* fields = nullptr;   // [options, width], a row for each question
  float* base = nullptr;     // [options, width]: the questions' own products
  float* h = nullptr;        // [options, width]: after a norm, and after attention
  float* wide = nullptr;     // [options, the widest of 4 * width, hidden and the MLP]
};
// The activations that only one kind of head has: a decision model's head that answers whole
// questions, or the head that predicts masked tokens.
struct HeadRows {
  CompactHeadRows compact;
  JointHeadRows joint;
  // [vocab]: of a sparse vector, the part of the tokens in the chunks before.
  float* sparse = nullptr;
};
// The most options of a row of a joint head.
int32_t JointOptionsMax(const ForwardLimits& limits);
// The width of JointHeadRows::wide.
int32_t JointWide(const ModelConfig& config);
// The keys and values of a row's tokens, or of its questions.
KvLayout JointKvLayout(const ModelConfig& config, const ForwardLimits& limits);

// Int8 rows that multiply weights of int8 or of blocks.
struct QuantizedRows {
  int8_t* values = nullptr;    // [rows, width]
  float* scales = nullptr;     // [rows]: with weights of int8
  RowBlock* blocks = nullptr;  // [rows, width / 32]: with weights of blocks
};

// The results of a mixture's products. slots: chunk * experts_per_token
// (model/forward/expert_routes.h).
struct ExpertSums {
  float* router = nullptr;  // [2, chunk, num_experts]: logits, and scratch of the same size
  float* out = nullptr;     // [slots, hidden]: of the down products
};

struct WorkspaceMemory {
  AlignedBuffer activations;
  AlignedBuffer logits;  // small pages, since a pass seldom has as many rows as it may

  size_t bytes() const { return activations.size() + logits.size(); }
};

// The activations of one pass, allocated once. "t": compute type. chunk: limits.chunk(). h, q, attn
// and act may be in tiles (kernels/row_tiles.h), and have room for whole tiles.
struct ForwardWorkspace {
  ForwardWorkspace(const ModelConfig& config, DType dtype, const ForwardLimits& limits);

  // The bytes that a workspace takes.
  static size_t Bytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits);
  // The bytes of a workspace's outputs. Logits need no further memory, whatever their number.
  static size_t OutputBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits);

  // Ends a layer: unless outputs are in place, x_out becomes x.
  void EndLayer();

  WorkspaceMemory memory;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  float* x = nullptr;      // [max_tokens, hidden]: the residual stream; null for outputs alone
  std::byte* h = nullptr;  // t [chunk, hidden]: after a norm
  std::byte* q = nullptr;  // t [max_tokens, num_heads * head_dim]: rotated, rounded
  // t [max_tokens, num_heads * head_dim], or [max_tokens, v_width] in a linear layer. Outputs in
  // place: the same memory as q.
  std::byte* attn = nullptr;
  // [StateLayout::layer_floats()]: the state of a row between two chunks, if the row's state is not
  // kept.
  float* own_state = nullptr;
  // [num_heads, max_tokens, num_rows] of RelativeAttention: the products of keys with its table.
  float* key_terms = nullptr;
  // [chunk, widest], for products that other operators finish, if the model has some: the product
  // of q, k and v, of a branch, of a linear layer's input, or of the gates of attention.
  float* sums = nullptr;
  // t [chunk, intermediate_padded], for the widest layer. In tiles, the elements behind a row stay
  // 0: nothing writes to them.
  std::byte* act = nullptr;
  // For a mixture of experts.
  ExpertSums expert_sums;
  std::byte* expert_in = nullptr;   // t [slots, hidden]
  std::byte* expert_act = nullptr;  // t [slots, expert_padded]
  // The rows of expert_in rounded to int8, then those of expert_act in the same memory:
  // [slots, the wider of hidden and expert_padded]. As `quantized`, it is for weights of 4 to 8
  // bits.
  QuantizedRows expert_quantized;
  std::byte* own_kv = nullptr;  // blocks [max_own_blocks] of one layer (KvLayout)
  // The outputs of chunks. They are x, q and own_kv themselves, unless outputs are collected; x_out
  // is x only if outputs are in place.
  float* x_out = nullptr;
  std::byte* q_out = nullptr;
  std::byte* own_kv_out = nullptr;
  // [chunk, the widest of hidden, q and intermediate], for the next product; only with weights of
  // int8 or of blocks
  QuantizedRows quantized;
  float* lora = nullptr;  // [chunk, lora_rank]: a · in of the next product; only with adapters
  // t [max_logit_rows, head_width]. All outputs except embeddings use only [max_logit_rows, hidden]
  // of it.
  std::byte* logit_h = nullptr;
  float* logits = nullptr;  // [max_logit_rows, output_width]: outputs of any kind
  HeadRows head;
  size_t output_width = 0;  // the widest of vocab, head_width and the heads' outputs
  size_t head_width = 0;    // the widest of hidden and the Dense modules after the pooling

 private:
  struct Sizes {
    size_t activation_bytes = 0, logit_bytes = 0;  // of the two buffers
    size_t output_bytes = 0;                       // the outputs' share of both
  };

  ForwardWorkspace() = default;
  // Points the members into the buffers, unless these are empty. Returns the bytes that they take.
  Sizes Place(const ModelConfig& config, DType dtype, const ForwardLimits& limits);
};

}  // namespace skein
