#include "runtime/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>

namespace skein {
namespace {

// Lowers *bytes to what a limit of the process leaves, of which `taken` bytes are in use.
void AddLimit(int resource, int64_t taken, int64_t* bytes) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  *bytes = std::min(*bytes, static_cast<int64_t>(limit.rlim_cur) - taken);
}

}  // namespace

int64_t ResidentBytes() { return ReadMemoryLine("/proc/self/status", "VmRSS:"); }

int64_t FreeMemoryBytes(int64_t limit_bytes, const MemoryFiles& files) {
  int64_t bytes = ReadMemoryLine(files.proc + "/meminfo", "MemAvailable:");
  if (bytes == 0) return 0;
  if (const auto group = ReadGroupMemory(files)) bytes = std::min(bytes, group->left_bytes);
  if (limit_bytes > 0) bytes = std::min(bytes, limit_bytes - ReadOwnMemory(files).resident_bytes);
  const std::string status = files.proc + "/self/status";
  AddLimit(RLIMIT_DATA, ReadMemoryLine(status, "VmData:"), &bytes);
  AddLimit(RLIMIT_AS, ReadMemoryLine(status, "VmSize:"), &bytes);
  return std::max<int64_t>(bytes, 1);
}

}  // namespace skein
