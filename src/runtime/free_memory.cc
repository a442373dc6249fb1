#include "runtime/free_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace skein {
namespace {

// The number in a one-line file; nullopt if the file has a word instead ("max").
std::optional<int64_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The number behind `key` in a file of lines "key number ..."; 0 if there is no such line.
int64_t ReadKey(const char* path, const char* key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return 0;
}

}  // namespace

int64_t ResidentBytes() { return ReadKey("/proc/self/status", "VmRSS:") * 1024; }

int64_t FreeMemoryBytes() {
  const int64_t available = ReadKey("/proc/meminfo", "MemAvailable:") * 1024;
  const auto limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const auto used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return available;
  // Cached file pages count as used, but the system can drop them.
  const int64_t files = ReadKey("/sys/fs/cgroup/memory.stat", "file");
  return std::clamp<int64_t>(*limit - *used + files, 0, available);
}

}  // namespace skein
