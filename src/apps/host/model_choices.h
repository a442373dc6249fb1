#pragma once

#include <array>

#include "base/threads/numa.h"
#include "model/weights/weight_choices.h"
#include "skein/choice_names.h"

namespace skein {

template <>
inline constexpr auto kChoiceNames<ComputeChoice> = std::to_array<ChoiceName<ComputeChoice>>({
    {"auto", ComputeChoice::kAuto},
    {"bf16", ComputeChoice::kBf16},
    {"f32", ComputeChoice::kF32},
});

template <>
inline constexpr auto kChoiceNames<Quantization> = std::to_array<ChoiceName<Quantization>>({
    {"auto", Quantization::kAuto},
    {"none", Quantization::kNone},
    {"int8", Quantization::kInt8},
    {"q8_0", Quantization::kQ8_0},
    {"int4", Quantization::kInt4},
});

template <>
inline constexpr auto kChoiceNames<KvCacheType> = std::to_array<ChoiceName<KvCacheType>>({
    {"auto", KvCacheType::kAuto},
    {"int8", KvCacheType::kInt8},
});

template <>
inline constexpr auto kChoiceNames<NumaRule> = std::to_array<ChoiceName<NumaRule>>({
    {"auto", NumaRule::kAuto},
    {"off", NumaRule::kOff},
    {"interleave", NumaRule::kInterleave},
    {"replicate", NumaRule::kReplicate},
});

}  // namespace skein
