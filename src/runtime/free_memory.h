#pragma once

#include <cstdint>

namespace skein {

// The bytes that this process can still take without swapping: what the system reports as
// available, or less if a control group allows less. 0 if it is not known.
int64_t FreeMemoryBytes();

// The bytes of this process that are in memory.
int64_t ResidentBytes();

}  // namespace skein
