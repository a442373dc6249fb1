#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"

namespace skein {

// A matrix product in oneDNN, with which `skein bench kernels` compares. No other code uses oneDNN:
// it is linked by a module beside the program, kOneDnnModule, that is loaded for this comparison
// alone, so that servers do not take its memory.
inline constexpr char kOneDnnModule[] = "skein_onednn.so";
class OneDnnProduct {
 public:
  // Null if there is no module, or if it does not find oneDNN. Makes `num_weights` copies of w [n,
  // k], in the order that oneDNN chooses. The type is bf16, or f32 if the processor has no
  // instruction that multiplies bf16.
  static std::unique_ptr<OneDnnProduct> Make(int32_t m, int32_t n, int32_t k,
                                             std::span<const Bf16> a, std::span<const Bf16> w,
                                             int num_weights, int num_threads);
  virtual ~OneDnnProduct() = default;
  // Computes out [m, n] f32 = a · (copy `weights` of w)^T, and waits for the result.
  virtual void Run(int weights) = 0;
  virtual std::span<const float> out() const = 0;
  virtual DType dtype() const = 0;  // of a and w
};

// The function of the module that makes a product. The caller owns it.
extern "C" OneDnnProduct* skein_make_onednn_product(int32_t m, int32_t n, int32_t k,
                                                    std::span<const Bf16> a,
                                                    std::span<const Bf16> w, int num_weights,
                                                    int num_threads);

}  // namespace skein
