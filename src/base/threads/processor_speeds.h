#pragma once

#include <string>
#include <vector>

#include "base/threads/numa.h"

namespace skein {

// The speed of a processor made for little power beside one made for speed, where Linux names the
// two kinds but no capacities. An estimate: its vectors of 256 bits take twice as long.
inline constexpr float kEfficientSpeed = 0.5f;

// The speed of each processor of `nodes`, by its number, as a share of the fastest's. Empty if all
// are equally fast, or if Linux does not say. The sources are, in `folder`:
//
//   system/cpu/cpu<i>/cpu_capacity   of every processor (x86: from Linux 6.12 on)
//   cpu_core/cpus, cpu_atom/cpus     the two kinds of an Intel hybrid processor
//
// The second source counts only if no two of the fast processors share a core. Two that do are each
// about as slow as an efficient one, and Linux then gives no unlike capacities either.
inline constexpr char kDevicesFolder[] = "/sys/devices";
std::vector<float> ProcessorSpeeds(const std::vector<NumaNode>& nodes,
                                   const std::string& folder = kDevicesFolder);

// Puts the fastest processors of each node first and keeps the order of equal ones.
void SortBySpeed(const std::vector<float>& speeds, std::vector<NumaNode>* nodes);

}  // namespace skein
