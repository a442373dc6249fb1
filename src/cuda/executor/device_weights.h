#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "cuda/device/device.h"
#include "model/weights/weights.h"

namespace skein::cuda {

// A PackedWeight on the device, byte for byte. Null panels: the model lacks it.
struct DeviceMatrix {
  int32_t n = 0;
  int32_t k = 0;
  int32_t words = 0;  // words of 32 bits of a padded row
  DType dtype = DType::kBf16;
  const void* panels = nullptr;
  const float* scales = nullptr;  // [n], of int8
};

// As LayerWeights. A bias or norm that the model lacks is null.
struct DeviceLayer {
  const float* attn_norm = nullptr;
  DeviceMatrix qkv;
  const float* qkv_bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  DeviceMatrix o;
  const float* o_bias = nullptr;
  const float* mlp_norm = nullptr;
  DeviceMatrix gate_up;
  const float* gate_up_bias = nullptr;
  DeviceMatrix down;
  const float* down_bias = nullptr;
};

// kUnsupported, with the field, unless the device computes this model: a dense decoder of the
// Llama, Mistral, Qwen2 or Qwen3 kind without windows, with weights in f32, bf16 or int8 rows.
Status CheckDeviceComputes(const ModelWeights& weights);

// The weights of such a model on the device. Immutable.
class DeviceWeights {
 public:
  // Copies the weights. Fails as Device::Allocate and Device::Wait do. REQUIRES:
  // CheckDeviceComputes.
  static Result<std::unique_ptr<DeviceWeights>> Upload(const ModelWeights& weights, Device* device);

  std::vector<DeviceLayer> layers;
  const float* final_norm = nullptr;
  DeviceMatrix output;
  const void* embedding = nullptr;  // T [vocab, hidden]; null: the panels of `output`
  DeviceMatrix head_out;
  const float* head_out_bias = nullptr;
  int64_t bytes = 0;

 private:
  explicit DeviceWeights(Device* device) : device_(device) {}

  // Copies `bytes` bytes to new memory of the device.
  Result<const void*> Put(const void* data, size_t bytes);
  Status Put(const std::vector<float>& values, const float** out);
  Status Put(const PackedWeight& weight, DeviceMatrix* out);
  Status PutLayer(const LayerWeights& layer, DeviceLayer* out);

  Device* const device_;
  std::vector<Buffer> buffers_;
};

}  // namespace skein::cuda
