#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "cuda/device/device.h"
#include "kernels/packed_weight.h"

namespace skein {

// Allocates memory on a device and fills it. Its random numbers are the same for every device.
class GpuOperands {
 public:
  GpuOperands(cuda::Device& device, uint64_t seed) : device_(device), random_(seed) {}

  std::vector<float> Random(size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& x : values) x = normal(random_);
    return values;
  }
  int32_t Integer(int32_t min, int32_t max) {
    return std::uniform_int_distribution<int32_t>(min, max)(random_);
  }
  static std::vector<Bf16> Rounded(const std::vector<float>& values) {
    std::vector<Bf16> rounded;
    for (const float x : values) rounded.push_back(ToBf16(x));
    return rounded;
  }

  // The address of a copy of `values` on the device; null if there is not enough memory.
  template <typename T>
  T* Put(const std::vector<T>& values) {
    T* memory = static_cast<T*>(Make(values.size() * sizeof(T)));
    if (memory == nullptr) return nullptr;
    device_.CopyToDevice(memory, values.data(), values.size() * sizeof(T));
    (void)device_.WaitForAll().ok();  // the device keeps the error
    return memory;
  }
  // The same for the panels of a matrix.
  const void* Put(const PackedWeight& w) {
    const auto* data = reinterpret_cast<const uint8_t*>(w.panel(0));
    const size_t rows = (w.n() + kPanelCols - 1) / kPanelCols * kPanelCols;
    return Put(std::vector<uint8_t>(data, data + rows * w.k_padded() * SizeOf(w.dtype())));
  }
  void* Make(size_t bytes) {
    Result<cuda::Buffer> buffer = cuda::Buffer::Make(&device_, cuda::Buffer::Place::kDevice, bytes);
    if (!buffer.ok()) {
      status_ = buffer.status();
      return nullptr;
    }
    buffers_.push_back(std::move(*buffer));
    return buffers_.back().as<void>();
  }

  // Whether the device had memory for all of them.
  const Status& status() const { return status_; }

  // Runs a kernel launch and returns `count` elements from `out`.
  template <typename T>
  Result<std::vector<float>> Run(const cuda::Launch& launch, const T* out, size_t count) {
    SKEIN_RETURN_IF_ERROR(status_);
    std::vector<T> values(count);
    device_.Run(launch);
    device_.CopyToHost(values.data(), out, count * sizeof(T));
    SKEIN_RETURN_IF_ERROR(device_.WaitForAll());
    std::vector<float> widened;
    for (const T x : values) {
      if constexpr (std::is_same_v<T, Bf16>) {
        widened.push_back(ToFloat(x));
      } else {
        widened.push_back(static_cast<float>(x));
      }
    }
    return widened;
  }

 private:
  cuda::Device& device_;
  std::mt19937_64 random_;
  std::vector<cuda::Buffer> buffers_;
  Status status_;
};

}  // namespace skein
