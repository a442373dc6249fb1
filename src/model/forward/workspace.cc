#include "model/forward/workspace.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/row_tiles.h"
#include "model/forward/batch.h"
#include "model/forward/state_layout.h"

namespace skein {
namespace {

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Hands out consecutive, aligned pieces of a buffer. If the buffer is empty, it hands out null and
// only counts the bytes.
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

int32_t CompactRowsMax(const ForwardLimits& limits) {
  return std::min(limits.max_tokens, kMaxMarkers) + kCompactExtraRows;
}

KvLayout CompactKvLayout(const ModelConfig& config, const ForwardLimits& limits) {
  const int32_t rows = CompactRowsMax(limits), heads = config.decision.compact_heads;
  // A question fills all its blocks except the last, and has at least three rows.
  const int32_t blocks = rows / kKvBlockTokens + std::min(limits.max_logit_rows, rows / 3) + 1;
  return {DType::kF32, 1, blocks, heads, config.decision.compact_width / heads};
}

int32_t JointOptionsMax(const ForwardLimits& limits) {
  return std::min(limits.max_tokens, kMaxMarkers);
}

int32_t JointWide(const ModelConfig& config) {
  const JointHeadFields& head = config.decision.joint;
  return std::max({4 * head.width, head.mlp_width, config.hidden_size});
}

KvLayout JointKvLayout(const ModelConfig& config, const ForwardLimits& limits) {
  const JointHeadFields& head = config.decision.joint;
  return {DType::kF32, 1, CeilDiv(limits.max_tokens, kKvBlockTokens), head.heads,
          head.width / head.heads};
}

namespace {

QuantizedRows TakeRows(size_t rows, size_t width, Carver& carver) {
  QuantizedRows taken;
  taken.values = carver.Take<int8_t>(rows * width);
  taken.scales = carver.Take<float>(rows * sizeof(float));
  taken.blocks = carver.Take<RowBlock>(rows * (width / kBlockTerms) * sizeof(RowBlock));
  return taken;
}

// Places the activations of a compact head.
void PlaceCompactHead(const ModelConfig& config, const ForwardLimits& limits, Carver& carver,
                      CompactHeadRows* compact) {
  const size_t rows = config.decision.is_compact() ? CompactRowsMax(limits) : 0;
  const size_t row_bytes = config.decision.compact_width * sizeof(float);
  const bool attends = rows > 0 && !config.decision.is_pointer;
  compact->states = carver.Take<float>(rows * config.hidden_size * sizeof(float));
  compact->x = carver.Take<float>(rows * row_bytes);
  compact->h = carver.Take<float>(rows * row_bytes);
  compact->wide = carver.Take<float>(4 * rows * row_bytes);
  compact->kv = carver.Take<std::byte>(attends ? CompactKvLayout(config, limits).total_bytes() : 0);
}

// Places the activations of a joint head.
void PlaceJointHead(const ModelConfig& config, const ForwardLimits& limits, Carver& carver,
                    JointHeadRows* joint) {
  if (!config.decision.is_joint()) return;
  const size_t tokens = limits.max_tokens, options = JointOptionsMax(limits);
  const size_t row = config.decision.joint.width * sizeof(float);
  joint->memory = carver.Take<float>(tokens * row);
  joint->memory_h = carver.Take<float>(tokens * row);
  joint->memory_kv = carver.Take<float>(2 * tokens * row);
  joint->kv = carver.Take<std::byte>(JointKvLayout(config, limits).total_bytes());
  joint->spans = carver.Take<float>((1 + 3 * options) * config.hidden_size * sizeof(float));
  joint->last = carver.Take<float>(row);
  for (float** rows : {&joint->options, &joint->fields, &joint->base, &joint->h}) {
    *rows = carver.Take<float>(options * row);
  }
  joint->wide = carver.Take<float>(options * JointWide(config) * sizeof(float));
}

}  // namespace

ForwardWorkspace::ForwardWorkspace(const ModelConfig& config, DType dtype,
                                   const ForwardLimits& limits) {
  const Sizes sizes = Place(config, dtype, limits);
  memory.activations = AlignedBuffer(sizes.activation_bytes);
  memory.logits = AlignedBuffer(sizes.logit_bytes, HugePages::kNone);
  Place(config, dtype, limits);
}

size_t ForwardWorkspace::Bytes(const ModelConfig& config, DType dtype,
                               const ForwardLimits& limits) {
  const Sizes sizes = ForwardWorkspace().Place(config, dtype, limits);
  return sizes.activation_bytes + sizes.logit_bytes;
}

size_t ForwardWorkspace::OutputBytes(const ModelConfig& config, DType dtype,
                                     const ForwardLimits& limits) {
  return ForwardWorkspace().Place(config, dtype, limits).output_bytes;
}

// Buffers that are in use at different times share memory of the larger one's size. q is no longer
// used when the residual stream is added to; attention's output is no longer used when q is made.
ForwardWorkspace::Sizes ForwardWorkspace::Place(const ModelConfig& config, DType dtype,
                                                const ForwardLimits& limits) {
  const size_t tokens = limits.outputs_alone ? 0 : limits.max_tokens;
  const size_t chunk = limits.outputs_alone ? 0 : limits.chunk();
  const size_t hidden = config.hidden_size;
  const size_t q_width = size_t(config.num_heads) * config.head_dim;
  const size_t padded = config.widest_intermediate_padded();
  const size_t t = SizeOf(dtype);
  const size_t x_bytes = tokens * hidden * sizeof(float);
  const size_t attn_width = std::max(q_width, size_t(config.decoder.linear.v_width()));
  const size_t q_bytes = RoundUp(tokens, kRowTileRows) * attn_width * t;
  const size_t chunk_rows = RoundUp(chunk, kRowTileRows);
  const int32_t own_blocks = limits.outputs_alone ? 0 : limits.max_own_blocks;
  const DType kv_type = limits.int8_kv ? DType::kInt8 : dtype;
  const KvLayout own = {kv_type, 1, own_blocks, config.num_kv_heads, config.head_dim};
  const size_t own_kv_bytes = own.layer_bytes();
  chunk_outputs = limits.chunk_outputs;
  const bool in_place = chunk_outputs == ChunkOutputs::kInPlace;
  const bool collected = chunk_outputs == ChunkOutputs::kCollected;
  Carver carver(memory.activations);
  x = carver.Take<float>(in_place ? x_bytes : std::max(x_bytes, q_bytes));
  q = carver.Take<std::byte>(in_place ? q_bytes : std::max(x_bytes, q_bytes));
  attn = in_place ? q : carver.Take<std::byte>(q_bytes);
  own_kv = carver.Take<std::byte>(own_kv_bytes);
  own_kv_out = collected ? carver.Take<std::byte>(std::max(own_kv_bytes, x_bytes)) : own_kv;
  q_out = collected ? attn : q;
  auto* const beside = reinterpret_cast<float*>(collected ? own_kv_out : q);
  x_out = in_place ? x : beside;
  h = carver.Take<std::byte>(chunk_rows * hidden * t);
  const size_t num_key_terms = config.num_heads * tokens * config.encoder.relative.num_rows();
  key_terms = carver.Take<float>(num_key_terms * sizeof(float));
  const size_t kv_width = size_t(config.num_kv_heads) * config.head_dim;
  const size_t qkv_width = config.decoder.qk_norm_spans_heads ? q_width + 2 * kv_width : 0;
  const size_t linear_width =
      config.has_linear_layers() ? std::max(size_t(config.decoder.linear.width()), q_width) : 0;
  const bool has_branches = config.has_branches() || config.decoder.shared_expert_size > 0;
  const size_t sums_width = std::max({has_branches ? hidden : 0, qkv_width, linear_width});
  sums = carver.Take<float>(chunk * sums_width * sizeof(float));
  own_state = carver.Take<float>(StateLayout(config, 0).layer_floats() * sizeof(float));
  act = carver.Take<std::byte>(chunk_rows * RoundUp(padded, kRowPiece) * t);
  const size_t slots = chunk * config.experts_per_token;
  expert_sums.router = carver.Take<float>(2 * chunk * config.num_experts * sizeof(float));
  expert_in = carver.Take<std::byte>(slots * hidden * t);
  expert_act = carver.Take<std::byte>(slots * config.expert_padded() * t);
  expert_sums.out = carver.Take<float>(slots * hidden * sizeof(float));
  if (limits.int8) {
    expert_quantized = TakeRows(slots, std::max(hidden, size_t(config.expert_padded())), carver);
    const size_t rows = std::max(chunk, size_t(limits.max_logit_rows));
    quantized = TakeRows(rows, std::max({hidden, attn_width, padded}), carver);
  }
  lora = carver.Take<float>(chunk * limits.lora_rank * sizeof(float));
  const size_t pass_bytes = carver.total();
  const int32_t vocab = config.has_logits() ? config.vocab_size : 0;
  const int32_t widest = std::max(config.hidden_size, limits.dense_width);
  head_width = widest;
  const int32_t actions = config.head == Head::kDecision ? kActionWidth : 0;
  const int32_t options = config.decision.is_compact() ? CompactRowsMax(limits) : 0;
  const int32_t joint_options = config.decision.is_joint() ? JointOptionsMax(limits) : 0;
  output_width = std::max({vocab, widest, config.num_classes, actions, options, joint_options});
  Carver logit_carver(memory.logits);
  logit_h = logit_carver.Take<std::byte>(limits.max_logit_rows * head_width * t);
  logits = logit_carver.Take<float>(limits.max_logit_rows * output_width * sizeof(float));
  PlaceCompactHead(config, limits, carver, &head.compact);
  PlaceJointHead(config, limits, carver, &head.joint);
  const bool is_sparse = config.head == Head::kMaskedLanguageModel;
  head.sparse = carver.Take<float>(is_sparse ? config.vocab_size * sizeof(float) : 0);
  const size_t logit_bytes = logit_carver.total();
  return {carver.total(), logit_bytes, carver.total() - pass_bytes + logit_bytes};
}

void ForwardWorkspace::EndLayer() {
  if (chunk_outputs == ChunkOutputs::kInPlace) return;
  // The new residual stream is in the memory of q: it was collected there, or made there.
  auto* const new_x = reinterpret_cast<float*>(q);
  q = reinterpret_cast<std::byte*>(x);
  x = new_x;
  if (chunk_outputs == ChunkOutputs::kCollected) return;
  q_out = q;
  x_out = reinterpret_cast<float*>(q);
}

}  // namespace skein
