#include "cuda/executor/device_weights.h"

#include <string>

namespace skein::cuda {

Status CheckDeviceComputes(const ModelWeights& weights) {
  const ModelConfig& c = weights.config;
  const auto refuse = [&](const std::string& field, const std::string& what) {
    return Status(StatusCode::kUnsupported,
                  "the device cuda does not compute " + what + " yet (" + c.ArchitectureName() +
                      "); the device cpu does",
                  field);
  };
  if (c.is_encoder()) return refuse("architectures", "encoders");
  if (c.head == Head::kDecision) return refuse("architectures", "decision heads");
  if (c.num_experts > 0) return refuse("num_experts", "mixtures of experts");
  if (c.has_linear_layers()) return refuse("layer_types", "linear attention");
  if (c.has_local_layers()) return refuse("sliding_window", "windows of attention");
  if (c.bidirectional) return refuse("architectures", "bidirectional decoders");
  if (c.has_branches()) return refuse("architectures", "norms behind attention and MLP");
  if (c.decoder.qk_norm_spans_heads) return refuse("architectures", "norms over all of q");
  if (c.decoder.attention_gate) return refuse("architectures", "gates of attention");
  if (c.decoder.reward_mlp) return refuse("architectures", "reward heads");
  if (c.activation != Activation::kSilu) return refuse("hidden_act", "other gates than SiLU");
  if (weights.matrix_dtype == DType::kBlocks) return refuse("quantization", "weights in blocks");
  if (weights.embedding_blocks != nullptr) return refuse("quantization", "embeddings in blocks");
  if (!weights.embedding_dense.empty()) return refuse("modules.json", "Dense modules");
  if (c.head_dim % 2 != 0) return refuse("head_dim", "odd heads");
  return Status::Ok();
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

Status DeviceWeights::PutLayer(const LayerWeights& layer, DeviceLayer* out) {
  SKEIN_RETURN_IF_ERROR(Put(layer.attn_norm, &out->attn_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.qkv, &out->qkv));
  SKEIN_RETURN_IF_ERROR(Put(layer.qkv_bias, &out->qkv_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.q_norm, &out->q_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.k_norm, &out->k_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.o, &out->o));
  SKEIN_RETURN_IF_ERROR(Put(layer.o_bias, &out->o_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.mlp_norm, &out->mlp_norm));
  SKEIN_RETURN_IF_ERROR(Put(layer.gate_up, &out->gate_up));
  SKEIN_RETURN_IF_ERROR(Put(layer.gate_up_bias, &out->gate_up_bias));
  SKEIN_RETURN_IF_ERROR(Put(layer.down, &out->down));
  return Put(layer.down_bias, &out->down_bias);
}

Result<std::unique_ptr<DeviceWeights>> DeviceWeights::Upload(const ModelWeights& weights,
                                                             Device* device) {
  std::unique_ptr<DeviceWeights> on_device(new DeviceWeights(device));
  DeviceWeights& w = *on_device;
  w.layers.resize(weights.layers.size());
  for (size_t i = 0; i < w.layers.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(w.PutLayer(weights.layers[i], &w.layers[i]));
  }
  SKEIN_RETURN_IF_ERROR(w.Put(weights.final_norm, &w.final_norm));
  SKEIN_RETURN_IF_ERROR(w.Put(weights.output, &w.output));
  if (weights.embedding.size() > 0) {
    SKEIN_ASSIGN_OR_RETURN(w.embedding, w.Put(weights.embedding.data(), weights.embedding.size()));
  }
  SKEIN_RETURN_IF_ERROR(w.Put(weights.head_out, &w.head_out));
  SKEIN_RETURN_IF_ERROR(w.Put(weights.head_out_bias, &w.head_out_bias));
  SKEIN_RETURN_IF_ERROR(device->WaitForAll());
  return on_device;
}

}  // namespace skein::cuda
