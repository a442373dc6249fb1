#include "cuda/executor/device_weights.h"

#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "cuda/kernels/panel_places.h"

namespace skein::cuda {

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
  if (c.encoder.relative.span > 0) return refuse("architectures", "relative attention");
  if (c.num_experts > kMaxExperts) return refuse("num_experts", "more than 1024 experts");
  if (c.experts_per_token > kMaxExpertsPerToken) {
    return refuse("num_experts_per_tok", "more than 32 experts of a token");
  }
  const bool computes_mlps = c.decision.num_layers == 0 || GateOf(c.decision.activation);
  if (!GateOf(c.activation) || !computes_mlps) return refuse("hidden_act", "this activation");
  if (weights.embedding_blocks != nullptr && !weights.embedding_blocks->format) {
    return refuse("quantization", std::string("embeddings in ") + weights.embedding_blocks->name);
  }
  if (c.num_experts > 0 && weights.matrix_dtype != weights.dtype) {
    return refuse("quantization", "packed experts");
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

Result<const void*> DeviceWeights::Put(const void* data, size_t size) {
  SKEIN_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Make(device_, Buffer::Place::kDevice, size));
  device_->CopyToDevice(buffer.as<void>(), data, size);
  const void* memory = buffer.as<void>();
  bytes += static_cast<int64_t>(size);
  buffers_.push_back(std::move(buffer));
  return memory;
}

Status DeviceWeights::Put(const std::vector<float>& values, const float** out) {
  if (values.empty()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const void* memory, Put(values.data(), values.size() * sizeof(float)));
  *out = static_cast<const float*>(memory);
  return Status::Ok();
}

Status DeviceWeights::Put(const PackedWeight& weight, DeviceMatrix* out) {
  if (weight.n() == 0) return Status::Ok();
  if (weight.dtype() == DType::kBlocks) return PutBlocks(weight, out);
  const int32_t panels = (weight.n() + kPanelCols - 1) / kPanelCols;
  const int64_t row_bytes = weight.k_padded() * static_cast<int64_t>(SizeOf(weight.dtype()));
  *out = {.n = weight.n(),
          .k = weight.k(),
          .words = static_cast<int32_t>(row_bytes / 4),
          .dtype = weight.dtype()};
  SKEIN_ASSIGN_OR_RETURN(out->panels, Put(weight.panel(0), panels * kPanelCols * row_bytes));
  if (weight.dtype() != DType::kInt8) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const void* scales,
                         Put(weight.scales(), panels * kPanelCols * sizeof(float)));
  out->scales = static_cast<const float*>(scales);
  return Status::Ok();
}

Status DeviceWeights::PutBlocks(const PackedWeight& weight, DeviceMatrix* out) {
  const std::vector<PanelPlace> places = PlacesOf(weight);
  *out = {.n = weight.n(), .k = weight.k(), .words = weight.k() / 4, .dtype = DType::kBlocks};
  SKEIN_ASSIGN_OR_RETURN(out->panels, Put(weight.panel(0), BytesOfPanels(weight)));
  SKEIN_ASSIGN_OR_RETURN(const void* on_device,
                         Put(places.data(), places.size() * sizeof(PanelPlace)));
  out->places = static_cast<const PanelPlace*>(on_device);
  return device_->WaitForAll();  // for `places`
}

Status DeviceWeights::PutEmbeddingBlocks(const ModelWeights& weights) {
  const BlockFormat format = *weights.embedding_blocks->format;
  const ModelConfig& c = weights.config;
  const int32_t panels = (c.vocab_size + kPanelCols - 1) / kPanelCols;
  PackedWeight packed(c.vocab_size, c.hidden_size, std::vector<BlockFormat>(panels, format));
  packed.PackBlocks(0, c.vocab_size, weights.embedding.data(), format);
  return PutBlocks(packed, &embedding_blocks);
}

Status DeviceWeights::PutExperts(const std::vector<ExpertWeights>& experts,
                                 PackedWeight ExpertWeights::*matrix, DeviceMatrix* out) {
  if (experts.empty()) return Status::Ok();
  const PackedWeight& first = experts[0].*matrix;
  const int32_t rows = (first.n() + kPanelCols - 1) / kPanelCols * kPanelCols;
  const int64_t row_bytes = first.k_padded() * static_cast<int64_t>(SizeOf(first.dtype()));
  const int64_t expert_bytes = rows * row_bytes;
  *out = {.n = first.n(),
          .k = first.k(),
          .words = static_cast<int32_t>(row_bytes / 4),
          .dtype = first.dtype()};
  SKEIN_ASSIGN_OR_RETURN(
      Buffer buffer, Buffer::Make(device_, Buffer::Place::kDevice, experts.size() * expert_bytes));
  out->panels = buffer.as<void>();
  for (size_t i = 0; i < experts.size(); ++i) {
    const PackedWeight& weight = experts[i].*matrix;
    SKEIN_CHECK(weight.n() == first.n() && weight.k() == first.k());
    SKEIN_CHECK(weight.dtype() == first.dtype() && weight.dtype() != DType::kInt8);
    device_->CopyToDevice(buffer.as<uint8_t>() + i * expert_bytes, weight.panel(0), expert_bytes);
  }
  bytes += static_cast<int64_t>(buffer.bytes());
  buffers_.push_back(std::move(buffer));
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

Status DeviceWeights::PutLayer(const LayerWeights& layer, DeviceLayer* out) {
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_norm, &out->attn_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_norm_bias, &out->attn_norm_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.qkv, &out->qkv));
  SKEIN_RETURN_IF_ERROR(Put(layer.qkv_bias, &out->qkv_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.q_norm, &out->q_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.k_norm, &out->k_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_gate, &out->attn_gate));
  SKEIN_RETURN_IF_ERROR(PutLinear(layer.linear, &out->linear));
  SKEIN_RETURN_IF_ERROR(Put(layer.o, &out->o));
  SKEIN_RETURN_IF_ERROR(Put(layer.o_bias, &out->o_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.mlp_norm, &out->mlp_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.mlp_norm_bias, &out->mlp_norm_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.gate_up, &out->gate_up));
  SKEIN_RETURN_IF_ERROR(Put(layer.gate_up_bias, &out->gate_up_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.down, &out->down));
  SKEIN_RETURN_IF_ERROR(Put(layer.down_bias, &out->down_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.post_attn_norm, &out->post_attn_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.post_mlp_norm, &out->post_mlp_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.router, &out->router));
  SKEIN_RETURN_IF_ERROR(PutExperts(layer.experts, &ExpertWeights::gate_up, &out->expert_gate_up));
  return PutExperts(layer.experts, &ExpertWeights::down, &out->expert_down);
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
                                                             Device* device) {
  std::unique_ptr<DeviceWeights> on_device(new DeviceWeights(device));
  DeviceWeights& w = *on_device;
  w.layers.resize(weights.layers.size());
  for (size_t i = 0; i < w.layers.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(w.PutLayer(weights.layers[i], &w.layers[i]));
  }
  SKEIN_RETURN_IF_ERROR(w.Put(weights.positions, &w.positions));
  SKEIN_RETURN_IF_ERROR(w.Put(weights.segments, &w.segments));
  const DecisionHeadWeights& decision = weights.decision;
  SKEIN_RETURN_IF_ERROR(w.Put(decision.input_norm, &w.head_input_norm));
  SKEIN_RETURN_IF_ERROR(w.Put(decision.input_norm_bias, &w.head_input_norm_bias));
  SKEIN_RETURN_IF_ERROR(w.Put(decision.type_embedding, &w.type_embedding));
  const bool outputs = DeviceComputesOutputs(weights);
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
