#include "cuda/executor/device_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/ceil_div.h"
#include "base/check.h"
#include "cuda/kernels/panel_places.h"
#include "model/forward/relative/distance_bias.h"

namespace skein::cuda {
namespace {

// The panels of a range of rows.
struct Panels {
  explicit Panels(const ColumnRange& rows)
      : begin(rows.begin / kPanelCols), end(CeilDiv(rows.end, kPanelCols)) {}

  int32_t begin, end;
};

int32_t NumPanels(const std::vector<ColumnRange>& rows) {
  int32_t count = 0;
  for (const ColumnRange& range : rows) count += Panels(range).end - Panels(range).begin;
  return count;
}

// Appends these rows' values. Zeros end the last panel of each range.
void AppendRows(std::span<const float> values, const std::vector<ColumnRange>& rows,
                std::vector<float>* out) {
  for (const ColumnRange& range : rows) {
    SKEIN_CHECK(range.end <= std::ssize(values));
    const std::span<const float> of_range = values.subspan(range.begin, range.size());
    out->insert(out->end(), of_range.begin(), of_range.end());
    out->resize(out->size() + NumPanels({range}) * kPanelCols - range.size());
  }
}

// The sizes of a matrix without blocks.
int64_t RowBytes(const PackedWeight& weight) {
  return weight.k_padded() * static_cast<int64_t>(SizeOf(weight.dtype()));
}
int64_t PanelBytes(const PackedWeight& weight) { return kPanelCols * RowBytes(weight); }

// These rows of a matrix, without its memory.
DeviceMatrix ShapeOf(const PackedWeight& weight, const std::vector<ColumnRange>& rows) {
  DeviceMatrix shape = {.k = weight.k(),
                        .words = static_cast<int32_t>(RowBytes(weight) / 4),
                        .dtype = weight.dtype()};
  for (const ColumnRange& range : rows) shape.n += range.size();
  return shape;
}

// The rows of q, k and v that belong to the rank's heads.
std::vector<ColumnRange> RowsOfHeads(const Rank& rank, const ModelConfig& config) {
  const int32_t q = config.num_heads * config.head_dim, k = config.num_kv_heads * config.head_dim;
  std::vector<ColumnRange> rows;
  for (const auto& [first, width] : {std::pair(0, q), {q, k}, {q + k, k}}) {
    const ColumnRange own = ColumnsOf(rank, width);
    rows.push_back({first + own.begin, first + own.end});
  }
  return rows;
}

// The rows of gate and of up that belong to the rank's columns, zeros between them included.
std::vector<ColumnRange> RowsOfGates(const Rank& rank, int32_t padded) {
  const ColumnRange own = ColumnsOf(rank, padded);
  return {own, {padded + own.begin, padded + own.end}};
}

// A grouped product has matrices of one type.
bool HasExpertsOfOneType(const LayerWeights& layer) {
  return std::ranges::all_of(layer.experts, [&](const ExpertWeights& expert) {
    const ExpertWeights& first = layer.experts.front();
    return expert.gate_up.dtype() == first.gate_up.dtype() &&
           expert.down.dtype() == first.down.dtype();
  });
}

}  // namespace

std::optional<Gate> GateOf(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return Gate::kSilu;
    case Activation::kGelu:
      return Gate::kGelu;
    case Activation::kGeluTanh:
      return Gate::kGeluTanh;
    case Activation::kRelu:
      return Gate::kRelu;
    case Activation::kClampedSwiglu:
      return Gate::kClampedSwiglu;
    default:
      return std::nullopt;
  }
}

Status CheckDeviceComputes(const ModelWeights& weights) {
  const ModelConfig& c = weights.config;
  const auto refuse = [&](const std::string& field, const std::string& what) {
    return Status(StatusCode::kUnsupported,
                  "the device cuda does not compute " + what + " yet (" + c.ArchitectureName() +
                      "); the device cpu does",
                  field);
  };
  if (c.head_dim > kMaxHeadDim) {
    return Status(StatusCode::kUnsupported,
                  "head_dim is " + std::to_string(c.head_dim) +
                      "; the attention kernels take at most " + std::to_string(kMaxHeadDim),
                  "head_dim");
  }
  if (c.encoder.relative.num_rows() % kPanelCols != 0) {
    return refuse("position_buckets", "a number of distances that is no multiple of 8");
  }
  if (c.num_experts > kMaxExperts) return refuse("num_experts", "more than 1024 experts");
  if (c.experts_per_token > kMaxExpertsPerToken) {
    return refuse("num_experts_per_tok", "more than 32 experts of a token");
  }
  const bool computes_mlps = c.decision.num_layers == 0 || GateOf(c.decision.activation);
  if (!GateOf(c.activation) || !computes_mlps) return refuse("hidden_act", "this activation");
  if (weights.embedding_blocks != nullptr && !weights.embedding_blocks->format) {
    return refuse("quantization", std::string("embeddings in ") + weights.embedding_blocks->name);
  }
  if (!std::ranges::all_of(weights.layers, HasExpertsOfOneType)) {
    return refuse("quantization", "experts of several types");
  }
  if (!DeviceComputesOutputs(weights) && c.head == Head::kLanguageModel) {
    return refuse("modules.json", "Dense modules behind a language model");
  }
  if (c.head_dim % 2 != 0) return refuse("head_dim", "odd heads");
  return Status::Ok();
}

bool DeviceComputesOutputs(const ModelWeights& weights) {
  switch (weights.config.head) {
    case Head::kLanguageModel:
    case Head::kNone:
      return weights.embedding_dense.empty();
    case Head::kClassifier:
      return weights.embedding_dense.empty() &&
             (weights.head_dense.n() == 0 || GateOf(weights.head_activation));
    case Head::kMaskedLanguageModel:
    case Head::kTokenVectors:
    case Head::kDecision:
      break;
  }
  return false;
}

Result<std::byte*> DeviceWeights::Allocate(size_t size) {
  SKEIN_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Make(device_, Buffer::Place::kDevice, size));
  auto* const memory = buffer.as<std::byte>();
  bytes += static_cast<int64_t>(size);
  buffers_.push_back(std::move(buffer));
  return memory;
}

Result<const void*> DeviceWeights::Put(const void* data, size_t size) {
  SKEIN_ASSIGN_OR_RETURN(std::byte* const memory, Allocate(size));
  device_->CopyToDevice(memory, data, size);
  return static_cast<const void*>(memory);
}

Status DeviceWeights::Put(const std::vector<float>& values, const float** out) {
  if (values.empty()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const void* memory, Put(values.data(), values.size() * sizeof(float)));
  *out = static_cast<const float*>(memory);
  return Status::Ok();
}

Status DeviceWeights::PutRows(const std::vector<float>& values, const Rows& rows,
                              const float** out) {
  if (values.empty()) return Status::Ok();
  std::vector<float> padded;
  AppendRows(values, rows, &padded);
  SKEIN_RETURN_IF_ERROR(Put(padded, out));
  return device_->WaitForAll();  // for `padded`
}

std::byte* DeviceWeights::CopyPanels(const PackedWeight& weight, const Rows& rows, std::byte* to) {
  for (const ColumnRange& range : rows) {
    const Panels panels(range);
    const int64_t size = (panels.end - panels.begin) * PanelBytes(weight);
    device_->CopyToDevice(to, weight.panel(panels.begin), size);
    to += size;
  }
  return to;
}

Status DeviceWeights::PutRows(const Matrices& matrices, const Rows& rows, DeviceMatrix* out) {
  const PackedWeight& first = *matrices.front();
  if (first.n() == 0) return Status::Ok();
  for (const PackedWeight* weight : matrices) {
    SKEIN_CHECK(weight->n() == first.n() && weight->k() == first.k());
    SKEIN_CHECK(weight->dtype() == first.dtype());
  }
  if (first.dtype() == DType::kBlocks) return PutBlocks(matrices, rows, out);
  *out = ShapeOf(first, rows);
  SKEIN_ASSIGN_OR_RETURN(std::byte * to,
                         Allocate(matrices.size() * NumPanels(rows) * PanelBytes(first)));
  out->panels = to;
  for (const PackedWeight* weight : matrices) to = CopyPanels(*weight, rows, to);
  if (first.dtype() != DType::kInt8) return Status::Ok();
  std::vector<float> scales;
  for (const PackedWeight* weight : matrices) {
    AppendRows({weight->scales(), static_cast<size_t>(weight->n())}, rows, &scales);
  }
  SKEIN_RETURN_IF_ERROR(Put(scales, &out->scales));
  return device_->WaitForAll();  // for `scales`
}

Status DeviceWeights::PutBlocks(const Matrices& matrices, const Rows& rows, DeviceMatrix* out) {
  const PackedWeight& first = *matrices.front();
  *out = {.k = first.k(), .words = first.k() / 4, .dtype = DType::kBlocks};
  for (const ColumnRange& range : rows) out->n += range.size();
  std::vector<PanelPlace> places;
  std::vector<std::span<const std::byte>> parts;
  int64_t size = 0;
  for (const PackedWeight* weight : matrices) {
    const std::vector<PanelPlace> all = PlacesOf(*weight);
    const auto end = static_cast<int64_t>(BytesOfPanels(*weight));
    const auto begin_of = [&](size_t panel) {
      return panel < all.size() ? all[panel].values : end;
    };
    for (const ColumnRange& range : rows) {
      const Panels panels(range);
      const int64_t begin = begin_of(panels.begin), bytes_of_range = begin_of(panels.end) - begin;
      for (int32_t panel = panels.begin; panel < panels.end; ++panel) {
        places.push_back(all[panel]);
        places.back().values += size - begin;
        places.back().scales += size - begin;
      }
      parts.emplace_back(weight->panel(0) + begin, bytes_of_range);
      size += bytes_of_range;
    }
  }
  SKEIN_ASSIGN_OR_RETURN(std::byte * to, Allocate(size));
  out->panels = to;
  for (const std::span<const std::byte> part : parts) {
    device_->CopyToDevice(to, part.data(), part.size());
    to += part.size();
  }
  SKEIN_ASSIGN_OR_RETURN(const void* on_device,
                         Put(places.data(), places.size() * sizeof(PanelPlace)));
  out->places = static_cast<const PanelPlace*>(on_device);
  return device_->WaitForAll();  // for `places`
}

Status DeviceWeights::PutDistances(const ModelWeights& weights) {
  if (weights.distance_bias.empty()) return Status::Ok();
  const ModelConfig& c = weights.config;
  const DistanceBias bias(c.encoder.relative_bias, weights.distance_bias, c.max_position);
  SKEIN_RETURN_IF_ERROR(Put(bias.terms(), &distances.terms));
  distances.stride = bias.stride();
  distances.num_positions = c.max_position;
  return device_->WaitForAll();  // for `bias`
}

Status DeviceWeights::PutEmbeddingBlocks(const ModelWeights& weights) {
  const BlockFormat format = *weights.embedding_blocks->format;
  const ModelConfig& c = weights.config;
  const int32_t panels = CeilDiv(c.vocab_size, kPanelCols);
  PackedWeight packed(c.vocab_size, c.hidden_size, std::vector<BlockFormat>(panels, format));
  packed.PackBlocks(0, c.vocab_size, weights.embedding.data(), format);
  return Put(packed, &embedding_blocks);
}

Status DeviceWeights::PutExperts(const std::vector<ExpertWeights>& experts,
                                 PackedWeight ExpertWeights::*matrix,
                                 std::vector<float> ExpertWeights::*bias, const Rows& rows,
                                 DeviceMatrix* out, const float** out_bias) {
  if (experts.empty()) return Status::Ok();
  Matrices matrices;
  std::vector<float> biases;
  for (const ExpertWeights& expert : experts) {
    matrices.push_back(&(expert.*matrix));
    if (!(expert.*bias).empty()) AppendRows(expert.*bias, rows, &biases);
  }
  SKEIN_RETURN_IF_ERROR(PutRows(matrices, rows, out));
  if (biases.empty()) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(Put(biases, out_bias));
  return device_->WaitForAll();  // for `biases`
}

Status DeviceWeights::PutBoth(const PackedWeight& first, const PackedWeight& second,
                              DeviceMatrix* out) {
  if (second.n() == 0) return Put(first, out);
  SKEIN_CHECK(first.k_padded() == second.k_padded());
  SKEIN_CHECK(first.dtype() == second.dtype() && SizeOf(first.dtype()) > 1);
  const Rows all_first = {{0, first.n()}}, all_second = {{0, second.n()}};
  *out = ShapeOf(first, all_first);
  out->n = NumPanels(all_first) * kPanelCols + second.n();
  SKEIN_ASSIGN_OR_RETURN(
      std::byte* const to,
      Allocate((NumPanels(all_first) + NumPanels(all_second)) * PanelBytes(first)));
  out->panels = to;
  CopyPanels(second, all_second, CopyPanels(first, all_first, to));
  return Status::Ok();
}

Status DeviceWeights::PutPair(const LoraPair& pair, DeviceLoraPair* out) {
  if (pair.rank() == 0) return Status::Ok();
  const PackedWeight& a = pair.a;
  const auto width = static_cast<int32_t>(PaddedWidth(a.n(), DType::kF32));
  const int64_t row_bytes = a.k_padded() * static_cast<int64_t>(SizeOf(a.dtype()));
  const int32_t panels = (a.n() + kPanelCols - 1) / kPanelCols;
  std::vector<std::byte> padded(width * row_bytes);
  std::memcpy(padded.data(), a.panel(0), panels * kPanelCols * row_bytes);
  out->a = {
      .n = width, .k = a.k(), .words = static_cast<int32_t>(row_bytes / 4), .dtype = a.dtype()};
  SKEIN_ASSIGN_OR_RETURN(out->a.panels, Put(padded.data(), padded.size()));
  SKEIN_RETURN_IF_ERROR(Put(pair.b, &out->b));
  return device_->WaitForAll();  // for `padded`
}

Status DeviceWeights::AddAdapters(const std::vector<LoraWeights>& lora) {
  for (const LoraWeights& adapter : lora) {
    DeviceAdapter& out = adapters.emplace_back();
    out.layers.resize(adapter.layers.size());
    for (size_t layer = 0; layer < adapter.layers.size(); ++layer) {
      for (size_t product = 0; product < kNumLoraProducts; ++product) {
        SKEIN_RETURN_IF_ERROR(
            PutPair(adapter.layers[layer].pairs[product], &out.layers[layer][product]));
      }
    }
  }
  return device_->WaitForAll();
}

Status DeviceWeights::PutLinear(const LinearWeights& linear, DeviceLinear* out) {
  if (linear.in.n() == 0) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(Put(linear.in, &out->in));
  SKEIN_RETURN_IF_ERROR(Put(linear.conv, &out->conv));
  SKEIN_RETURN_IF_ERROR(Put(linear.dt_bias, &out->dt_bias));
  SKEIN_RETURN_IF_ERROR(Put(linear.norm, &out->norm));
  std::vector<double> rates;
  for (const float a_log : linear.a_log) rates.push_back(std::exp(double{a_log}));
  SKEIN_ASSIGN_OR_RETURN(const void* on_device, Put(rates.data(), rates.size() * sizeof(double)));
  out->rates = static_cast<const double*>(on_device);
  return device_->WaitForAll();  // for `rates`
}

Status DeviceWeights::PutLayer(const ModelConfig& config, const LayerWeights& layer,
                               DeviceLayer* out) {
  // A linear layer, an encoder's or a decision head's are whole: they have one rank.
  const bool whole = rank_.count == 1;
  const Rows heads = whole ? Rows{{0, layer.qkv.n()}} : RowsOfHeads(rank_, config);
  const Rows gates =
      whole ? Rows{{0, layer.gate_up.n()}} : RowsOfGates(rank_, layer.gate_up.n() / 2);
  const Rows columns = {ColumnsOf(rank_, config.hidden_size)};
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_norm, &out->attn_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_norm_bias, &out->attn_norm_bias));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.qkv, heads, &out->qkv));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.qkv_bias, heads, &out->qkv_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.q_norm, &out->q_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.k_norm, &out->k_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.sinks, &out->sinks));
  SKEIN_RETURN_IF_ERROR(PutBoth(layer.distance_keys, layer.distance_queries, &out->distances));
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_gate, &out->attn_gate));
  SKEIN_RETURN_IF_ERROR(PutLinear(layer.linear, &out->linear));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.o, columns, &out->o));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.o_bias, columns, &out->o_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.mlp_norm, &out->mlp_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.mlp_norm_bias, &out->mlp_norm_bias));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.gate_up, gates, &out->gate_up));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.gate_up_bias, gates, &out->gate_up_bias));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.down, columns, &out->down));
  SKEIN_RETURN_IF_ERROR(PutRows(layer.down_bias, columns, &out->down_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.post_attn_norm, &out->post_attn_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.post_mlp_norm, &out->post_mlp_norm));
  SKEIN_CHECK(layer.shared_gate.n() == 0 || layer.router_bias.empty());
  SKEIN_RETURN_IF_ERROR(PutBoth(layer.router, layer.shared_gate, &out->router));
  SKEIN_RETURN_IF_ERROR(Put(layer.router_bias, &out->router_bias));
  SKEIN_RETURN_IF_ERROR(PutExperts(
      layer.experts, &ExpertWeights::gate_up, &ExpertWeights::gate_up_bias,
      RowsOfGates(rank_, config.expert_padded()), &out->expert_gate_up, &out->expert_gate_up_bias));
  return PutExperts(layer.experts, &ExpertWeights::down, &ExpertWeights::down_bias, columns,
                    &out->expert_down, &out->expert_down_bias);
}

Status DeviceWeights::PutOutputs(const ModelWeights& weights) {
  SKEIN_RETURN_IF_ERROR(Put(weights.final_norm, &final_norm));
  SKEIN_RETURN_IF_ERROR(Put(weights.final_norm_bias, &final_norm_bias));
  SKEIN_RETURN_IF_ERROR(Put(weights.head_dense, &head_dense));
  SKEIN_RETURN_IF_ERROR(Put(weights.head_dense_bias, &head_dense_bias));
  SKEIN_RETURN_IF_ERROR(Put(weights.head_norm, &head_norm));
  SKEIN_RETURN_IF_ERROR(Put(weights.head_norm_bias, &head_norm_bias));
  SKEIN_RETURN_IF_ERROR(Put(weights.head_out, &head_out));
  return Put(weights.head_out_bias, &head_out_bias);
}

Result<std::unique_ptr<DeviceWeights>> DeviceWeights::Upload(const ModelWeights& weights,
                                                             const Rank& rank, Device* device) {
  std::unique_ptr<DeviceWeights> on_device(new DeviceWeights(rank, device));
  DeviceWeights& w = *on_device;
  w.layers.resize(weights.layers.size());
  for (size_t i = 0; i < w.layers.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(w.PutLayer(weights.config, weights.layers[i], &w.layers[i]));
  }
  SKEIN_RETURN_IF_ERROR(w.Put(weights.positions, &w.positions));
  SKEIN_RETURN_IF_ERROR(w.Put(weights.segments, &w.segments));
  SKEIN_RETURN_IF_ERROR(w.PutDistances(weights));
  const DecisionHeadWeights& decision = weights.decision;
  SKEIN_RETURN_IF_ERROR(w.Put(decision.input_norm, &w.head_input_norm));
  SKEIN_RETURN_IF_ERROR(w.Put(decision.input_norm_bias, &w.head_input_norm_bias));
  SKEIN_RETURN_IF_ERROR(w.Put(decision.type_embedding, &w.type_embedding));
  const bool outputs = DeviceComputesOutputs(weights) && rank.leads();
  // An embedding that is tied to the output matrix is read from its panels.
  if (outputs || weights.embedding.size() == 0) {
    SKEIN_RETURN_IF_ERROR(w.Put(weights.output, &w.output));
  }
  if (weights.embedding_blocks != nullptr) {
    SKEIN_RETURN_IF_ERROR(w.PutEmbeddingBlocks(weights));
  } else if (weights.embedding.size() > 0) {
    SKEIN_ASSIGN_OR_RETURN(w.embedding, w.Put(weights.embedding.data(), weights.embedding.size()));
  }
  if (outputs) SKEIN_RETURN_IF_ERROR(w.PutOutputs(weights));
  SKEIN_RETURN_IF_ERROR(device->WaitForAll());
  return on_device;
}

}  // namespace skein::cuda
