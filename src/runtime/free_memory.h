#pragma once

#include <cstdint>

namespace skein {

// Bytes that this process could still take without swapping: what the system reports as available,
// or less if a control group allows less. 0 if unknown.
int64_t FreeMemoryBytes();

// Bytes of this process in memory.
int64_t ResidentBytes();

}  // namespace skein
