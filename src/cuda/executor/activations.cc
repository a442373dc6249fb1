#include "cuda/executor/activations.h"

#include <algorithm>
#include <limits>

#include "cuda/executor/device_weights.h"
#include "cuda/executor/tiles/tile_cutter.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// Longer prompts attend tile after tile, so that their partial sums fit.
constexpr int64_t kPartialBytesMax = int64_t{64} << 20;

int64_t RoundUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

}  // namespace

int32_t DenseMlpSize(const ModelConfig& config) {
  const bool only_experts = config.num_experts > 0 &&
                            std::ranges::all_of(config.has_experts, [](bool has) { return has; });
  return only_experts ? 0 : config.intermediate_size;
}

Result<Activations> Activations::Make(const CudaContext& context, const ForwardLimits& limits) {
  const ModelWeights& weights = *context.model.weights;
  Activations activations;
  activations.device_ = context.device;
  activations.dtype_ = weights.dtype;
  SKEIN_RETURN_IF_ERROR(activations.Allocate(context.model, limits));
  if (context.rank.leads()) SKEIN_RETURN_IF_ERROR(activations.AllocateOutputs(weights, limits));
  return activations;
}

Status Activations::Add(size_t size, Buffer* buffer) {
  SKEIN_ASSIGN_OR_RETURN(*buffer, Buffer::Make(device_, Buffer::Place::kDevice, size));
  bytes += static_cast<int64_t>(size);
  return Status::Ok();
}

Status Activations::Add(int64_t rows, int64_t width, DType dtype, Operand* operand) {
  operand->dtype = dtype;
  operand->width = PaddedWidth(width, dtype);
  operand->filled = width;
  return Add(rows * operand->width * SizeOf(dtype), &operand->buffer);
}

Status Activations::Allocate(const ForwardContext& model, const ForwardLimits& limits) {
  const ModelConfig& c = model.weights->config;
  const int64_t tokens = limits.max_tokens;
  const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
  const int64_t qkv_width = q_width + int64_t{2} * c.num_kv_heads * c.head_dim;
  SKEIN_RETURN_IF_ERROR(Add(tokens * c.hidden_size * sizeof(float), &x));
  SKEIN_RETURN_IF_ERROR(Add(tokens, c.hidden_size, &h));
  SKEIN_RETURN_IF_ERROR(Add(tokens, q_width, &q));
  SKEIN_RETURN_IF_ERROR(Add(tokens, q_width, &attn));
  if (const int32_t size = DenseMlpSize(c); size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(tokens, size, &act));
  }
  if (c.decision.num_layers > 0) {
    SKEIN_RETURN_IF_ERROR(Add(tokens, c.decision.intermediate_size, &head_act));
  }
  if (!c.HasGate(c.num_layers - 1)) {
    const int32_t widest = std::max(c.intermediate_size, c.decision.intermediate_size);
    SKEIN_RETURN_IF_ERROR(Add(tokens * widest * sizeof(float), &up));
  }
  SKEIN_RETURN_IF_ERROR(
      Add(tokens * std::max<int64_t>(qkv_width, c.hidden_size) * sizeof(float), &qkv));
  if (c.has_branches() || c.decoder.shared_expert_size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(tokens * c.hidden_size * sizeof(float), &branch));
  }
  // One at least: for the tokens that pad a batch.
  const int64_t own_blocks = std::max(1, limits.max_own_blocks);
  SKEIN_RETURN_IF_ERROR(Add(own_blocks * model.kv_layout.block_bytes(), &own_kv));
  // A row of a bidirectional model is in one batch. A batch of single tokens has the most tiles.
  const int64_t longest_row = c.bidirectional ? tokens : model.rope->num_positions();
  const int32_t group_size = c.num_heads / c.num_kv_heads;
  AttentionArgs longest = {
      .num_tiles = 1,
      .tile_rows = AttentionTileRows(WideRows(dtype_, model.kv_layout.head_dim_padded()),
                                     static_cast<int32_t>(tokens) * group_size,
                                     std::numeric_limits<int64_t>::max()),
      .num_segments = static_cast<int32_t>(RoundUp(longest_row, kKeysPerSegment) / kKeysPerSegment),
      .num_kv_heads = c.num_kv_heads,
      .head_dim = c.head_dim};
  SKEIN_RETURN_IF_ERROR(Add(PrefixPartialBytes(model, limits), &partial.prefixes));
  const int64_t most_bytes = std::max(kPartialBytesMax, PartialBytes(longest));
  longest.num_tiles =
      static_cast<int32_t>(tokens * RoundUp(group_size, longest.tile_rows) / longest.tile_rows);
  if (longest.num_segments > 1) {
    SKEIN_RETURN_IF_ERROR(Add(std::min(PartialBytes(longest), most_bytes), &partial.tiles));
  }
  SKEIN_RETURN_IF_ERROR(AllocateInt8(c, model.weights->matrix_dtype, tokens));
  if (c.num_experts > 0) SKEIN_RETURN_IF_ERROR(AllocateExperts(c, tokens));
  if (c.has_linear_layers() || c.decoder.attention_gate) {
    SKEIN_RETURN_IF_ERROR(AllocateLinear(c, tokens));
  }
  if (const int32_t rows = c.encoder.relative.num_rows(); rows > 0) {
    const int64_t heads = int64_t{2} * c.num_heads * tokens;
    SKEIN_RETURN_IF_ERROR(Add(heads, c.head_dim, &relative.heads));
    SKEIN_RETURN_IF_ERROR(Add(heads * rows * sizeof(float), &relative.terms));
  }
  return AllocateLora(model, tokens);
}

// Those of the operand that needs most: rows of a dense product, or of slots.
Status Activations::AllocateInt8(const ModelConfig& c, DType matrices, int64_t tokens) {
  if (!TakesInt8Rows(matrices)) return Status::Ok();
  const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
  const int64_t widest =
      std::max<int64_t>({c.hidden_size, q_width, DenseMlpSize(c), c.decision.intermediate_size,
                         c.decoder.shared_expert_size, c.decoder.linear.v_width()});
  const int64_t slots = tokens * c.experts_per_token;
  const auto most = [&](const auto& size) {
    return std::max<int64_t>(tokens * size(widest), slots * size(c.expert_size));
  };
  const auto scales_of_row = [&](int64_t width) {
    return matrices == DType::kInt8 ? 1 : 2 * (RoundUp(width, kBlockTerms) / kBlockTerms);
  };
  SKEIN_RETURN_IF_ERROR(
      Add(most([](int64_t width) { return PaddedWidth(width, DType::kInt8); }), &int8));
  return Add(most(scales_of_row) * sizeof(float), &scales);
}

Status Activations::AllocateOutputs(const ModelWeights& weights, const ForwardLimits& limits) {
  const ModelConfig& c = weights.config;
  const int64_t rows = limits.max_logit_rows;
  if (!DeviceComputesOutputs(weights)) {
    SKEIN_ASSIGN_OR_RETURN(
        x_on_host, Buffer::Make(device_, Buffer::Place::kHost,
                                int64_t{limits.max_tokens} * c.hidden_size * sizeof(float)));
    return Status::Ok();
  }
  SKEIN_RETURN_IF_ERROR(Add(rows, c.hidden_size, &output_h));
  const int64_t logits = c.has_logits() ? RoundUp(c.vocab_size, kPanelCols) : 0;
  const int64_t widest_output = std::max<int64_t>({logits, c.hidden_size, c.num_classes});
  SKEIN_RETURN_IF_ERROR(Add(rows * widest_output * sizeof(float), &outputs));
  SKEIN_RETURN_IF_ERROR(Add(rows * sizeof(RowLargest), &largest.of_rows));
  SKEIN_RETURN_IF_ERROR(
      Add(rows * LargestParts(c.vocab_size) * sizeof(PartLargest), &largest.parts));
  SKEIN_ASSIGN_OR_RETURN(on_host, Buffer::Make(device_, Buffer::Place::kHost, outputs.bytes()));
  SKEIN_ASSIGN_OR_RETURN(largest.on_host,
                         Buffer::Make(device_, Buffer::Place::kHost, largest.of_rows.bytes()));
  return Status::Ok();
}

Status Activations::AllocateLora(const ForwardContext& model, int64_t tokens) {
  const int32_t rank = model.adapters == nullptr ? 0 : WidestRank(*model.adapters);
  if (rank == 0) return Status::Ok();
  const auto changes_gates = [](const LoraLayer& layer) {
    return layer.of(LoraProduct::kGateUp).rank() > 0;
  };
  if (std::ranges::any_of(*model.adapters, [&](const LoraWeights& adapter) {
        return std::ranges::any_of(adapter.layers, changes_gates);
      })) {
    const int64_t gates = int64_t{2} * model.weights->config.intermediate_padded();
    SKEIN_RETURN_IF_ERROR(Add(tokens * gates * sizeof(float), &lora.gate_sums));
  }
  return Add(tokens, rank, DType::kF32, &lora.u);
}

Status Activations::AllocateLinear(const ModelConfig& c, int64_t tokens) {
  const LinearLayers& shape = c.decoder.linear;
  const int32_t q_width = c.num_heads * c.head_dim;
  const int64_t width = std::max(c.has_linear_layers() ? shape.width() : 0, q_width);
  SKEIN_RETURN_IF_ERROR(Add(tokens * width * sizeof(float), &linear.sums));
  if (!c.has_linear_layers()) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(Add(tokens * shape.conv_width() * sizeof(float), &linear.qkv));
  SKEIN_RETURN_IF_ERROR(Add(tokens * shape.num_v_heads * kDeltaGatesBytes, &linear.gates));
  return Add(tokens, shape.v_width(), &linear.out);
}

Status Activations::AllocateExperts(const ModelConfig& c, int64_t tokens) {
  const int64_t slots = tokens * c.experts_per_token;
  const int32_t shared_size = c.decoder.shared_expert_size;
  const int64_t logits =
      shared_size > 0 ? RoundUp(c.num_experts, kPanelCols) + 1 : int64_t{c.num_experts};
  SKEIN_RETURN_IF_ERROR(Add(tokens * logits * sizeof(float), &experts.logits));
  if (shared_size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(tokens, shared_size, &experts.shared_act));
    SKEIN_RETURN_IF_ERROR(Add(tokens * sizeof(float), &experts.shared_weights));
  }
  SKEIN_RETURN_IF_ERROR(Add(slots * sizeof(int32_t), &experts.chosen));
  SKEIN_RETURN_IF_ERROR(Add(slots * sizeof(float), &experts.weights));
  SKEIN_RETURN_IF_ERROR(Add(c.num_experts * sizeof(int32_t), &experts.counts));
  SKEIN_RETURN_IF_ERROR(Add(tokens * c.num_experts * sizeof(int32_t), &experts.slots));
  SKEIN_RETURN_IF_ERROR(Add(slots, c.expert_size, &experts.act));
  return Add(slots * c.hidden_size * sizeof(float), &experts.out);
}

}  // namespace skein::cuda
