#pragma once

#include <cstdint>

namespace skein {

// Bytes that this process could still take without swapping: what the system calls available, less
// where a control group allows less. 0 if it cannot be learnt.
int64_t FreeMemoryBytes();

// Bytes of this process that are in memory.
int64_t ResidentBytes();

}  // namespace skein
