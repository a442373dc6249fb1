#pragma once

#include <cstdint>

#include "base/memory_limit.h"

namespace skein {

// The bytes that this process can still take without swapping: what the system reports as
// available, or less if control groups, limits of the process (ulimit) or `limit_bytes` for the
// memory of the process (0: any) allow less. 0 if it is not known, at least 1 if it is.
int64_t FreeMemoryBytes(int64_t limit_bytes = 0, const MemoryFiles& files = {});

// The bytes of this process that are in memory.
int64_t ResidentBytes();

}  // namespace skein
