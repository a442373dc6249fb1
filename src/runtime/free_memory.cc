#include "runtime/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace skein {
namespace {

// The number behind `key` in a file of lines "key number ..."; 0 if there is no such line.
int64_t ReadKey(const std::string& path, const char* key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return 0;
}

// Lowers *bytes to what a limit of the process leaves, of which `taken` bytes are in use.
void AddLimit(int resource, int64_t taken, int64_t* bytes) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  *bytes = std::min(*bytes, static_cast<int64_t>(limit.rlim_cur) - taken);
}

}  // namespace

int64_t ResidentBytes() { return ReadKey("/proc/self/status", "VmRSS:") * 1024; }

int64_t FreeMemoryBytes(int64_t limit_bytes, const MemoryFiles& files) {
  int64_t bytes = ReadKey(files.proc + "/meminfo", "MemAvailable:") * 1024;
  if (bytes == 0) return 0;
  if (const auto group = ReadGroupMemory(files)) bytes = std::min(bytes, group->left_bytes);
  if (limit_bytes > 0) bytes = std::min(bytes, limit_bytes - ReadOwnMemory(files).resident_bytes);
  const std::string status = files.proc + "/self/status";
  AddLimit(RLIMIT_DATA, ReadKey(status, "VmData:") * 1024, &bytes);
  AddLimit(RLIMIT_AS, ReadKey(status, "VmSize:") * 1024, &bytes);
  return std::max<int64_t>(bytes, 1);
}

}  // namespace skein
