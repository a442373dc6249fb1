#include "cuda/executor/activations.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "cuda/executor/device_weights.h"
#include "cuda/executor/tiles/tile_cutter.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// Longer prompts attend tile after tile, so that their partial sums fit.
constexpr int64_t kPartialBytesMax = int64_t{64} << 20;

int64_t RoundUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

bool ChangesGates(const std::vector<LoraWeights>& adapters) {
  const auto changes = [](const LoraLayer& layer) {
    return layer.of(LoraProduct::kGateUp).rank() > 0;
  };
  return std::ranges::any_of(adapters, [&](const LoraWeights& adapter) {
    return std::ranges::any_of(adapter.layers, changes);
  });
}

}  // namespace

int32_t DenseMlpSize(const ModelConfig& config) {
  const bool only_experts = config.num_experts > 0 &&
                            std::ranges::all_of(config.has_experts, [](bool has) { return has; });
  return only_experts ? 0 : config.intermediate_size;
}

ForwardLimits LimitsOnDevice(const ModelConfig& config, ForwardLimits limits) {
  if (config.encoder.relative.span > 0) limits.chunk_tokens = 0;
  return limits;
}

ActivationShape::ActivationShape(const CudaContext& context)
    : config(&context.model.weights->config),
      dtype(context.model.weights->dtype),
      matrices(context.model.weights->matrix_dtype),
      num_positions(context.model.rope == nullptr ? 0 : context.model.rope->num_positions()),
      kv_block_bytes(static_cast<int64_t>(context.model.kv_layout.block_bytes())),
      num_kv_heads(context.model.kv_layout.num_kv_heads),
      shares_prefixes(context.model.share_attention),
      leads(context.rank.leads()),
      outputs(DeviceComputesOutputs(*context.model.weights)),
      means(context.model.pooling == Pooling::kMean || config->encoder.classifies_mean) {
  if (context.model.adapters == nullptr) return;
  lora_rank = WidestRank(*context.model.adapters);
  changes_gates = ChangesGates(*context.model.adapters);
}

Result<Activations> Activations::Make(const CudaContext& context, const ForwardLimits& limits) {
  Activations activations;
  activations.device_ = context.device;
  SKEIN_RETURN_IF_ERROR(activations.Allocate(ActivationShape(context), limits));
  return activations;
}

int64_t Activations::Bytes(const ActivationShape& shape, const ForwardLimits& limits) {
  Activations counted;
  SKEIN_CHECK(counted.Allocate(shape, limits).ok());
  return counted.bytes;
}

Status Activations::Add(size_t size, Buffer* buffer) {
  bytes += static_cast<int64_t>(size);
  if (device_ == nullptr) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(*buffer, Buffer::Make(device_, Buffer::Place::kDevice, size));
  return Status::Ok();
}

Status Activations::AddOnHost(size_t size, Buffer* buffer) {
  if (device_ == nullptr) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(*buffer, Buffer::Make(device_, Buffer::Place::kHost, size));
  return Status::Ok();
}

Status Activations::Add(int64_t rows, int64_t width, DType dtype, Operand* operand) {
  operand->dtype = dtype;
  operand->width = PaddedWidth(width, dtype);
  operand->filled = width;
  return Add(rows * operand->width * SizeOf(dtype), &operand->buffer);
}

Status Activations::Allocate(const ActivationShape& shape, const ForwardLimits& limits) {
  dtype_ = shape.dtype;
  const ModelConfig& c = *shape.config;
  const int64_t tokens = limits.max_tokens, chunk = limits.chunk();
  const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
  const int64_t qkv_width = q_width + int64_t{2} * c.num_kv_heads * c.head_dim;
  SKEIN_RETURN_IF_ERROR(Add(tokens * c.hidden_size * sizeof(float), &x));
  SKEIN_RETURN_IF_ERROR(Add(tokens, q_width, &q));
  SKEIN_RETURN_IF_ERROR(Add(chunk, c.hidden_size, &h));
  SKEIN_RETURN_IF_ERROR(Add(chunk, q_width, &attn));
  if (const int32_t size = DenseMlpSize(c); size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(chunk, size, &act));
  }
  if (c.decision.num_layers > 0) {
    SKEIN_RETURN_IF_ERROR(Add(chunk, c.decision.intermediate_size, &head_act));
  }
  if (!c.HasGate(c.num_layers - 1)) {
    const int32_t widest = std::max(c.intermediate_size, c.decision.intermediate_size);
    SKEIN_RETURN_IF_ERROR(Add(chunk * widest * sizeof(float), &up));
  }
  SKEIN_RETURN_IF_ERROR(
      Add(chunk * std::max<int64_t>(qkv_width, c.hidden_size) * sizeof(float), &qkv));
  if (c.has_branches() || c.decoder.shared_expert_size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(chunk * c.hidden_size * sizeof(float), &branch));
  }
  // One at least: for the tokens that pad a batch.
  const int64_t own_blocks = std::max(1, limits.max_own_blocks);
  SKEIN_RETURN_IF_ERROR(Add(own_blocks * shape.kv_block_bytes, &own_kv));
  SKEIN_RETURN_IF_ERROR(AllocatePartial(shape, limits));
  SKEIN_RETURN_IF_ERROR(AllocateInt8(shape, chunk));
  if (c.num_experts > 0) SKEIN_RETURN_IF_ERROR(AllocateExperts(c, chunk));
  if (c.has_linear_layers() || c.decoder.attention_gate) {
    SKEIN_RETURN_IF_ERROR(AllocateLinear(c, chunk));
  }
  if (const int32_t rows = c.encoder.relative.num_rows(); rows > 0) {
    const int64_t heads = int64_t{2} * c.num_heads * tokens;
    SKEIN_RETURN_IF_ERROR(Add(heads, c.head_dim, &relative.heads));
    SKEIN_RETURN_IF_ERROR(Add(heads * rows * sizeof(float), &relative.terms));
  }
  SKEIN_RETURN_IF_ERROR(AllocateLora(shape, chunk));
  return shape.leads ? AllocateOutputs(shape, limits) : Status::Ok();
}

Status Activations::AllocatePartial(const ActivationShape& shape, const ForwardLimits& limits) {
  const ModelConfig& c = *shape.config;
  const int32_t chunk = limits.chunk();
  if (shape.shares_prefixes) {
    SKEIN_RETURN_IF_ERROR(Add(PrefixPartialBytes(c, shape.num_kv_heads, shape.num_positions, chunk),
                              &partial.prefixes));
  }
  // A row of a bidirectional model is in one batch. A batch of single tokens has the most tiles.
  const int64_t longest_row = c.bidirectional ? limits.max_tokens : shape.num_positions;
  const int32_t group_size = c.num_heads / c.num_kv_heads;
  const KvLayout kv = {shape.dtype, 1, 1, c.num_kv_heads, c.head_dim};
  AttentionArgs longest = {
      .num_tiles = 1,
      .tile_rows = AttentionTileRows(WideRows(dtype_, kv.head_dim_padded()), chunk * group_size,
                                     std::numeric_limits<int64_t>::max()),
      .num_segments = static_cast<int32_t>(RoundUp(longest_row, kKeysPerSegment) / kKeysPerSegment),
      .num_kv_heads = c.num_kv_heads,
      .head_dim = c.head_dim};
  const int64_t most_bytes = std::max(kPartialBytesMax, PartialBytes(longest));
  longest.num_tiles =
      static_cast<int32_t>(chunk * RoundUp(group_size, longest.tile_rows) / longest.tile_rows);
  if (longest.num_segments <= 1) return Status::Ok();
  return Add(std::min(PartialBytes(longest), most_bytes), &partial.tiles);
}

// Those of the operand that needs most: rows of a dense product, or of slots.
Status Activations::AllocateInt8(const ActivationShape& shape, int64_t rows) {
  if (!TakesInt8Rows(shape.matrices)) return Status::Ok();
  const ModelConfig& c = *shape.config;
  const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
  const int64_t widest =
      std::max<int64_t>({c.hidden_size, q_width, DenseMlpSize(c), c.decision.intermediate_size,
                         c.decoder.shared_expert_size, c.decoder.linear.v_width()});
  const int64_t slots = rows * c.experts_per_token;
  const auto most = [&](const auto& size) {
    return std::max<int64_t>(rows * size(widest), slots * size(c.expert_size));
  };
  const auto scales_of_row = [&](int64_t width) {
    return shape.matrices == DType::kInt8 ? 1 : 2 * (RoundUp(width, kBlockTerms) / kBlockTerms);
  };
  SKEIN_RETURN_IF_ERROR(
      Add(most([](int64_t width) { return PaddedWidth(width, DType::kInt8); }), &int8));
  return Add(most(scales_of_row) * sizeof(float), &scales);
}

Status Activations::AllocateOutputs(const ActivationShape& shape, const ForwardLimits& limits) {
  const ModelConfig& c = *shape.config;
  const int64_t rows = limits.max_logit_rows;
  const int64_t x_bytes = int64_t{limits.max_tokens} * c.hidden_size * sizeof(float);
  if (!shape.outputs) return AddOnHost(x_bytes, &of_tokens.on_host);
  SKEIN_RETURN_IF_ERROR(Add(rows, c.hidden_size, &output_h));
  const int64_t logits = c.has_logits() ? RoundUp(c.vocab_size, kPanelCols) : 0;
  const int64_t widest_output = std::max<int64_t>({logits, c.hidden_size, c.num_classes});
  SKEIN_RETURN_IF_ERROR(Add(rows * widest_output * sizeof(float), &outputs));
  if (shape.means) SKEIN_RETURN_IF_ERROR(Add(x_bytes, &of_tokens.normed));
  SKEIN_RETURN_IF_ERROR(Add(rows * sizeof(RowLargest), &largest.of_rows));
  SKEIN_RETURN_IF_ERROR(
      Add(rows * LargestParts(c.vocab_size) * sizeof(PartLargest), &largest.parts));
  if (c.has_logits()) {
    const int64_t groups = rows * NumDrawGroups(c.vocab_size);
    SKEIN_RETURN_IF_ERROR(Add(groups * sizeof(float), &largest.best));
    SKEIN_RETURN_IF_ERROR(Add(groups * sizeof(double), &largest.sums));
  }
  SKEIN_RETURN_IF_ERROR(AddOnHost(outputs.bytes(), &on_host));
  return AddOnHost(largest.of_rows.bytes(), &largest.on_host);
}

Status Activations::AllocateLora(const ActivationShape& shape, int64_t rows) {
  if (shape.lora_rank == 0) return Status::Ok();
  if (shape.changes_gates) {
    const int64_t gates = int64_t{2} * shape.config->intermediate_padded();
    SKEIN_RETURN_IF_ERROR(Add(rows * gates * sizeof(float), &lora.gate_sums));
  }
  return Add(rows, shape.lora_rank, DType::kF32, &lora.u);
}

Status Activations::AllocateLinear(const ModelConfig& c, int64_t rows) {
  const LinearLayers& shape = c.decoder.linear;
  const int32_t q_width = c.num_heads * c.head_dim;
  const int64_t width = std::max(c.has_linear_layers() ? shape.width() : 0, q_width);
  SKEIN_RETURN_IF_ERROR(Add(rows * width * sizeof(float), &linear.sums));
  if (!c.has_linear_layers()) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(Add(rows * shape.conv_width() * sizeof(float), &linear.qkv));
  SKEIN_RETURN_IF_ERROR(Add(rows * shape.num_v_heads * kDeltaGatesBytes, &linear.gates));
  return Add(rows, shape.v_width(), &linear.out);
}

Status Activations::AllocateExperts(const ModelConfig& c, int64_t rows) {
  const int64_t slots = rows * c.experts_per_token;
  const int32_t shared_size = c.decoder.shared_expert_size;
  const int64_t logits =
      shared_size > 0 ? RoundUp(c.num_experts, kPanelCols) + 1 : int64_t{c.num_experts};
  SKEIN_RETURN_IF_ERROR(Add(rows * logits * sizeof(float), &experts.logits));
  if (shared_size > 0) {
    SKEIN_RETURN_IF_ERROR(Add(rows, shared_size, &experts.shared_act));
    SKEIN_RETURN_IF_ERROR(Add(rows * sizeof(float), &experts.shared_weights));
  }
  SKEIN_RETURN_IF_ERROR(Add(slots * sizeof(int32_t), &experts.chosen));
  SKEIN_RETURN_IF_ERROR(Add(slots * sizeof(float), &experts.weights));
  SKEIN_RETURN_IF_ERROR(Add(c.num_experts * sizeof(int32_t), &experts.counts));
  SKEIN_RETURN_IF_ERROR(Add(rows * c.num_experts * sizeof(int32_t), &experts.slots));
  SKEIN_RETURN_IF_ERROR(Add(slots, c.expert_size, &experts.act));
  return Add(slots * c.hidden_size * sizeof(float), &experts.out);
}

}  // namespace skein::cuda
