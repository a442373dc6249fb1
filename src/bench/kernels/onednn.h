#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"

namespace skein {

// The same product in oneDNN, the yardstick of `skein bench kernels`. Nothing else uses oneDNN.
class OneDnnProduct {
 public:
  // Null where oneDNN was not there when Skein was built. `num_weights` copies of w [n, k], in the
  // order that oneDNN chooses for itself; in bf16, or in f32 where this processor has no product of
  // bf16 in oneDNN (2.6: below AVX-512).
  static std::unique_ptr<OneDnnProduct> Make(int32_t m, int32_t n, int32_t k,
                                             std::span<const Bf16> a, std::span<const Bf16> w,
                                             int num_weights, int num_threads);
  virtual ~OneDnnProduct() = default;
  // out [m, n] f32 = a · (copy `weights`)^T; waits for the result.
  virtual void Run(int weights) = 0;
  virtual std::span<const float> out() const = 0;
  virtual DType dtype() const = 0;  // of a and w
};

}  // namespace skein
