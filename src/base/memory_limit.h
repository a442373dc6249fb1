#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace skein {

// The folders in which the system describes memory. Tests name others.
struct MemoryFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// The bytes behind `key` in a file of lines "key number kB", such as meminfo; 0: no such line.
int64_t ReadMemoryLine(const std::string& path, const std::string& key);

// The memory that control groups, of version 1 or 2, leave to this process. The groups around its
// own count, too.
struct GroupMemory {
  int64_t limit_bytes = 0;  // the lowest limit
  // In the group that has the least. Cached pages of files count as left: the system drops them
  // first.
  int64_t left_bytes = 0;
};

// nullopt: no group has a limit below the machine's memory. Reads a few files: some 0.1 ms.
std::optional<GroupMemory> ReadGroupMemory(const MemoryFiles& files = {});

// The memory of the process that no file backs.
struct OwnMemory {
  int64_t mapped_bytes = 0;    // what RLIMIT_DATA limits, touched or not
  int64_t resident_bytes = 0;  // what a group charges
  int64_t num_threads = 0;     // each has a stack, most of which is never touched
};
OwnMemory ReadOwnMemory(const MemoryFiles& files = {});

// The most bytes that may be mapped when `left_bytes` more may become resident and `kept_bytes` of
// them are the system's own. Memory that is mapped and not touched yet takes its part of them. At
// least a quarter stays free for more: some libraries map much and touch little.
int64_t MappedMax(const OwnMemory& own, int64_t left_bytes, int64_t kept_bytes);

// Has threads share the allocator's arenas where addresses are limited (RLIMIT_AS, `ulimit -v`).
// The arena of a thread takes 64 MiB of addresses. A thread that finds no room for one maps and
// unmaps pages at each allocation: a hundred times slower, and never refused. Call it before
// threads start.
void ShareArenas();

// Keeps the process below the limit of its control groups, and below one of its own. Beyond such a
// limit the system ends the process. This class has it refuse memory instead (RLIMIT_DATA): the
// allocation throws std::bad_alloc, which ends one request alone. Not thread-safe.
class MemoryCeiling {
 public:
  // `own_limit_bytes` 0: the groups' limits alone. Sets no ceiling yet.
  explicit MemoryCeiling(int64_t own_limit_bytes, MemoryFiles files = {});

  // Adapts the ceiling to what is left now. Call it from time to time: other processes of the
  // groups take memory, too, and limits change. Takes some 0.1 ms. If even this finds no memory,
  // the ceiling stays until the next call.
  void Update();

  // The lowest limit, as of the last Update; 0: there is none.
  int64_t limit_bytes() const { return limit_bytes_; }
  // The bytes that could be mapped below the ceiling at the last Update.
  int64_t room_bytes() const { return room_bytes_; }

 private:
  void Adapt();
  std::optional<GroupMemory> ReadLimit();
  void SetMax(int64_t mapped_bytes);

  const int64_t own_limit_bytes_;
  const MemoryFiles files_;
  int64_t given_max_bytes_;  // the process's limit at the start, which is not exceeded
  int64_t limit_bytes_ = 0;
  int64_t room_bytes_ = 0;
};

}  // namespace skein
