#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "harness.h"

namespace skein::fuzz {
namespace {

struct OwnFolder {
  OwnFolder() {
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    path = in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    path /= "skein-fuzz-" + std::to_string(getpid());
    std::filesystem::create_directories(path);
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

// The contents of the files, by name: a change of one part of an input leaves the others' files.
std::map<std::string, std::string, std::less<>>& Written() {
  static std::map<std::string, std::string, std::less<>> written;
  return written;
}

}  // namespace

std::filesystem::path Folder() {
  static const OwnFolder folder;
  return folder.path;
}

uint64_t SeedOf(Bytes data) {
  uint64_t seed = data.size();
  for (const uint8_t byte : data) seed = RandomBitsAt(seed, 4, byte);
  return seed;
}

void WriteFile(std::string_view name, std::string_view bytes) {
  const auto before = Written().find(name);
  if (before != Written().end() && before->second == bytes) return;
  std::ofstream out(Folder() / name, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  SKEIN_CHECK(out.good());
  Written().insert_or_assign(std::string(name), bytes);
}

void RemoveFile(std::string_view name) {
  std::filesystem::remove(Folder() / name);
  if (const auto found = Written().find(name); found != Written().end()) Written().erase(found);
}

}  // namespace skein::fuzz
