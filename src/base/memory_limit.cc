#include "base/memory_limit.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
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

// Reads the start of a file of the system, as much as fits; nothing if there is no such file. Takes
// no memory: that may be what lacks.
std::string_view ReadStart(const std::string& path, std::span<char> buffer) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t count = read(file, buffer.data() + size, buffer.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  close(file);
  return {buffer.data(), size};
}
using FileBuffer = std::array<char, 16384>;  // the files have some 2,000 bytes

// Takes the first line off *text.
std::string_view TakeLine(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

// The number at the start of a text; nullopt if there is something else.
std::optional<int64_t> NumberAt(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// The number in a one-line file; nullopt if there is a word instead ("max"), or no such file.
std::optional<int64_t> ReadNumber(const std::string& path) {
  FileBuffer buffer;
  return NumberAt(ReadStart(path, buffer));
}

// The number behind `key` in a file of lines "key number ..."; nullopt if there is no such line.
std::optional<int64_t> ReadKey(const std::string& path, std::string_view key) {
  constexpr std::string_view kBlanks = " \t";
  FileBuffer buffer;
  for (std::string_view text = ReadStart(path, buffer); !text.empty();) {
    std::string_view line = TakeLine(&text);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const size_t blanks = std::min(line.find_first_not_of(kBlanks), line.size());
    if (blanks > 0) return NumberAt(line.substr(blanks));
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
  FileBuffer buffer;
  for (std::string_view groups = ReadStart(files.proc + "/self/cgroup", buffer); !groups.empty();) {
    const std::string line(TakeLine(&groups));  // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
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
  try {
    Adapt();
  } catch (const std::bad_alloc&) {  // the names of the files need memory
  }
}

void MemoryCeiling::Adapt() {
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
