#pragma once

// The choices of weights by the names that tests have as parameters.

#include <string>

#include "base/check.h"
#include "model/weights/weight_choices.h"

namespace skein::testing {

inline ComputeChoice ComputeChoiceOf(const std::string& name) {
  SKEIN_CHECK(name == "auto" || name == "bf16" || name == "f32");
  if (name == "f32") return ComputeChoice::kF32;
  return name == "bf16" ? ComputeChoice::kBf16 : ComputeChoice::kAuto;
}

inline Quantization QuantizationOf(const std::string& name) {
  SKEIN_CHECK(name == "auto" || name == "none" || name == "int8" || name == "q8_0" ||
              name == "int4");
  if (name == "int8") return Quantization::kInt8;
  if (name == "q8_0") return Quantization::kQ8_0;
  if (name == "int4") return Quantization::kInt4;
  return name == "none" ? Quantization::kNone : Quantization::kAuto;
}

}  // namespace skein::testing
