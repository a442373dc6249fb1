#pragma once

#include <array>
#include <cstdint>

#include "skein/choice_names.h"

namespace skein {

// The device that computes. The emulated GPU is slow, and meant for trials on machines without a
// GPU.
enum class DeviceChoice : uint8_t { kCpu, kCuda, kCudaEmulated };

template <>
inline constexpr auto kChoiceNames<DeviceChoice> =
    std::to_array<ChoiceName<DeviceChoice>>({{"cpu", DeviceChoice::kCpu},
                                             {"cuda", DeviceChoice::kCuda},
                                             {"cuda-emulated", DeviceChoice::kCudaEmulated}});

}  // namespace skein
