#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "cuda/device/device.h"
#include "model/weights/weights.h"

namespace skein::cuda {

// A copy of a PackedWeight on the device, byte for byte. Null panels: the model has no such matrix.
struct DeviceMatrix {
  int32_t n = 0;
  int32_t k = 0;
  int32_t words = 0;  // words of 32 bits in a row, padding included
  DType dtype = DType::kBf16;
  const void* panels = nullptr;
  const float* scales = nullptr;  // [n], for int8
};

// LayerWeights on the device. A bias or norm that the model does not have is null.
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

// Checks that the device can compute this model: a dense decoder like Llama, Mistral, Qwen2 or
// Qwen3, without windows, with weights in f32, bf16 or int8 rows. kUnsupported, with the field, for
// other models.
Status CheckDeviceComputes(const ModelWeights& weights);

// The weights of a model on the device. Immutable.
class DeviceWeights {
 public:
  // Copies the weights to the device. Fails as Device::Allocate and Device::Wait do. REQUIRES:
  // CheckDeviceComputes is ok.
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

  // Copies `bytes` bytes to newly allocated memory of the device.
  Result<const void*> Put(const void* data, size_t bytes);
  Status Put(const std::vector<float>& values, const float** out);
  Status Put(const PackedWeight& weight, DeviceMatrix* out);
  Status PutLayer(const LayerWeights& layer, DeviceLayer* out);

  Device* const device_;
  std::vector<Buffer> buffers_;
};

}  // namespace skein::cuda
