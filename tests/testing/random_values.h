#pragma once

// Random tensors for tests of the kernels, seeds printed on failure.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.h"

namespace skein::testing {

// SKEIN_TEST_SEED, else fixed: one seed reproduces a run.
inline uint32_t TestSeed() {
  const char* seed = std::getenv("SKEIN_TEST_SEED");
  return seed != nullptr ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10)) : 20250701u;
}

enum class Range {
  kPlain,    // normal distribution
  kExtreme,  // besides, denormals, zeros of both signs, and very small and large magnitudes
};

class RandomValues {
 public:
  explicit RandomValues(uint32_t seed = TestSeed()) : random_(seed) {}

  int32_t Integer(int32_t min, int32_t max) {
    return std::uniform_int_distribution<int32_t>(min, max)(random_);
  }
  float Float(Range range) {
    const float x = normal_(random_);
    if (range == Range::kPlain) return x;
    switch (Integer(0, 15)) {
      case 0:
        return 0.0f;
      case 1:
        return -0.0f;
      case 2:
        return x * 1e-39f;  // a denormal
      case 3:
        return x * 1e-20f;
      case 4:
        return x * 1e15f;
      case 5:
        return x * 1e-33f;
      default:
        return x;
    }
  }
  // Values that `dtype` represents exactly.
  std::vector<float> Floats(size_t count, DType dtype, Range range) {
    std::vector<float> values(count);
    for (float& x : values) {
      x = Float(range);
      if (dtype == DType::kBf16) x = ToFloat(ToBf16(x));
    }
    return values;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

// The values as an array of `dtype`, exactly.
class TypedArray {
 public:
  TypedArray(const std::vector<float>& values, DType dtype) : f32_(values), dtype_(dtype) {
    for (float x : values) bf16_.push_back(ToBf16(x));
  }
  const void* data() const { return At(0); }
  const void* At(size_t index) const {
    return dtype_ == DType::kF32 ? static_cast<const void*>(&f32_[index]) : &bf16_[index];
  }
  void* At(size_t index) {
    return dtype_ == DType::kF32 ? static_cast<void*>(&f32_[index]) : &bf16_[index];
  }
  std::vector<float> Values() const {
    if (dtype_ == DType::kF32) return f32_;
    std::vector<float> values;
    for (Bf16 x : bf16_) values.push_back(ToFloat(x));
    return values;
  }

 private:
  std::vector<float> f32_;
  std::vector<Bf16> bf16_;
  DType dtype_;
};

// The same bits; any NaN equals any other.
inline bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

inline ::testing::AssertionResult SameBits(const std::vector<float>& a,
                                           const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " != " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameBits(a[i], b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << std::hexfloat << a[i]
                                           << " and " << b[i] << ", seed " << TestSeed();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace skein::testing
