#include "base/memory_limit.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <utility>

namespace skein {
namespace {

// The part of a limit that is left to the system, for sockets and page tables.
constexpr int64_t kKeptShare = 16;
constexpr int64_t kKeptBytesMax = int64_t{32} << 20;
constexpr int64_t kMappedShareMin = 4;  // at least a quarter of what is left may be mapped
// The addresses of one arena, and the part of the limit that all of them may take.
constexpr rlim_t kArenaBytes = rlim_t{64} << 20;
constexpr rlim_t kArenaShare = 4;
constexpr int64_t kUsualStackBytes = int64_t{8} << 20;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The names of one version's files.
struct GroupFiles {
  std::initializer_list<const char*> limits;
  const char* used;
  std::initializer_list<const char*> cached_keys;  // lines of memory.stat
};
const GroupFiles kVersion1 = {{"memory.limit_in_bytes"},
                              "memory.usage_in_bytes",
                              {"total_inactive_file", "total_active_file"}};
// Above memory.high the system slows the process down until it stands still.
const GroupFiles kVersion2 = {
    {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}};

// The number in a one-line file; nullopt if there is a word instead ("max"), or no such file.
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The number behind `key` in a file of lines "key number ..."; nullopt if there is no such line.
std::optional<int64_t> ReadKey(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

// Takes the limit of the group at `dir` into *found.
void AddGroup(const GroupFiles& names, const std::string& dir, int64_t machine_bytes,
              std::optional<GroupMemory>* found) {
  const auto used = ReadNumber(dir + names.used);
  if (!used) return;
  std::optional<int64_t> limit;
  for (const char* name : names.limits) {
    const auto number = ReadNumber(dir + name);
    if (number && (!limit || *number < *limit)) limit = number;
  }
  if (!limit || (machine_bytes > 0 && *limit >= machine_bytes)) return;
  int64_t left = *limit - *used;
  for (const char* key : names.cached_keys) left += ReadKey(dir + "memory.stat", key).value_or(0);
  left = std::clamp<int64_t>(left, 0, *limit);
  if (!*found) *found = GroupMemory{*limit, left};
  (*found)->limit_bytes = std::min((*found)->limit_bytes, *limit);
  (*found)->left_bytes = std::min((*found)->left_bytes, left);
}

// Visits the group at `path` and those around it. In a container, `path` may be the host's and lie
// outside of what the container sees: then the outermost folder is the process's group.
void AddGroups(const GroupFiles& names, const std::string& mount, std::string path,
               int64_t machine_bytes, std::optional<GroupMemory>* found) {
  if (path.find("..") != std::string::npos) path.clear();
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    AddGroup(names, mount + path + "/", machine_bytes, found);
    if (path.empty()) return;
    path.erase(std::min(path.rfind('/'), path.size()));
  }
}

}  // namespace

int64_t ReadMemoryLine(const std::string& path, const std::string& key) {
  return ReadKey(path, key).value_or(0) * 1024;
}

std::optional<GroupMemory> ReadGroupMemory(const MemoryFiles& files) {
  const int64_t machine_bytes = ReadMemoryLine(files.proc + "/meminfo", "MemTotal:");
  std::optional<GroupMemory> found;
  std::ifstream groups(files.proc + "/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) {
      AddGroups(kVersion1, files.cgroup + "/memory", path, machine_bytes, &found);
    } else if (controllers == ",,") {
      AddGroups(kVersion2, files.cgroup, path, machine_bytes, &found);
      AddGroups(kVersion2, files.cgroup + "/unified", path, machine_bytes, &found);
    }
  }
  return found;
}

OwnMemory ReadOwnMemory(const MemoryFiles& files) {
  const std::string status = files.proc + "/self/status";
  return {.mapped_bytes = ReadMemoryLine(status, "VmData:"),
          .resident_bytes = ReadMemoryLine(status, "RssAnon:"),
          .num_threads = ReadKey(status, "Threads:").value_or(1)};
}

int64_t MappedMax(const OwnMemory& own, int64_t left_bytes, int64_t kept_bytes) {
  const int64_t left = std::max<int64_t>(left_bytes - kept_bytes, 0);
  const int64_t stacks = own.num_threads * kUsualStackBytes;
  const int64_t untouched = std::max<int64_t>(own.mapped_bytes - own.resident_bytes - stacks, 0);
  return own.mapped_bytes + std::max(left - untouched, left / kMappedShareMin);
}

void ShareArenas() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const rlim_t most = limit.rlim_cur / (kArenaShare * kArenaBytes);
  mallopt(M_ARENA_MAX, static_cast<int>(std::clamp<rlim_t>(most, 1, 1024)));
}

MemoryCeiling::MemoryCeiling(int64_t own_limit_bytes, MemoryFiles files)
    : own_limit_bytes_(own_limit_bytes), files_(std::move(files)) {
  rlimit given{};
  getrlimit(RLIMIT_DATA, &given);
  given_max_bytes_ =
      static_cast<int64_t>(std::min(given.rlim_cur, static_cast<rlim_t>(kUnlimited)));
  ReadLimit();
}

std::optional<GroupMemory> MemoryCeiling::ReadLimit() {
  const auto group = ReadGroupMemory(files_);
  limit_bytes_ = group ? group->limit_bytes : 0;
  if (own_limit_bytes_ > 0 && (limit_bytes_ == 0 || own_limit_bytes_ < limit_bytes_)) {
    limit_bytes_ = own_limit_bytes_;
  }
  return group;
}

void MemoryCeiling::SetMax(int64_t mapped_bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const int64_t most = std::min(mapped_bytes, given_max_bytes_);
  const rlim_t wanted = most == kUnlimited ? RLIM_INFINITY : static_cast<rlim_t>(most);
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_DATA, &limit);
}

void MemoryCeiling::Update() {
  const bool was_limited = limit_bytes_ > 0;
  const auto group = ReadLimit();
  if (limit_bytes_ == 0) {
    if (was_limited) SetMax(kUnlimited);
    return;
  }
  const OwnMemory own = ReadOwnMemory(files_);
  int64_t left = group ? group->left_bytes : limit_bytes_;
  if (own_limit_bytes_ > 0) left = std::min(left, own_limit_bytes_ - own.resident_bytes);
  const int64_t kept = std::min(limit_bytes_ / kKeptShare, kKeptBytesMax);
  const int64_t most = MappedMax(own, left, kept);
  room_bytes_ = most - own.mapped_bytes;
  SetMax(most);
}

}  // namespace skein
