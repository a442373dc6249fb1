#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"

namespace skein {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // sanitizers need any amount of address space
#else
constexpr bool kLimitsMemory = true;
#endif

constexpr size_t kPieceBytes = size_t{1} << 20;

size_t AddressSpaceBytes() {
  std::ifstream in("/proc/self/statm");
  size_t pages = 0;
  in >> pages;
  return pages * 4096;
}

// Takes all memory that is left under a limit.
std::vector<std::unique_ptr<char[]>> TakeAll(size_t left_bytes) {
  const rlimit limit = {AddressSpaceBytes() + left_bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(1024);
  for (size_t bytes = kPieceBytes; bytes >= 4096; bytes /= 2) {
    try {
      while (taken.size() < 1024) taken.push_back(std::make_unique<char[]>(bytes));
    } catch (const std::bad_alloc&) {
    }
  }
  return taken;
}

// 0: as promised. Runs in a process of its own, whose limit ends with it.
int UseReserve() {
  if (!MemoryReserve::Keep() || MemoryReserve::NumMissing() != 0) return 1;
  auto taken = TakeAll(8 * kPieceBytes);
  try {
    taken.push_back(std::make_unique<char[]>(kPieceBytes));
    return 2;  // memory was left
  } catch (const std::bad_alloc&) {
  }
  {
    const ReserveScope scope;
    auto piece = std::make_unique<char[]>(kPieceBytes);
    if (MemoryReserve::NumMissing() == 0) return 3;
    // Memory that is mapped, too.
    const AlignedBuffer buffer(2 * MemoryReserve::kSliceBytes);
    if (buffer.data() == nullptr) return 4;
    if (MemoryReserve::Refill()) return 5;
  }
  taken.clear();
  return MemoryReserve::Refill() && MemoryReserve::NumMissing() == 0 ? 0 : 6;
}

// 0: more than the reserve is no one's.
int ExceedReserve() {
  if (!MemoryReserve::Keep()) return 1;
  const auto taken = TakeAll(8 * kPieceBytes);
  const ReserveScope scope;
  try {
    const AlignedBuffer buffer(2 * MemoryReserve::kNumSlices * MemoryReserve::kSliceBytes);
    return 2;
  } catch (const std::bad_alloc&) {
    return MemoryReserve::NumMissing() == MemoryReserve::kNumSlices ? 0 : 3;
  }
}

TEST(MemoryReserve, ServesThreadsInItsScopeAlone) {
  if (!kLimitsMemory) GTEST_SKIP() << "sanitizers take address space without end";
  EXPECT_EXIT(std::_Exit(UseReserve()), ::testing::ExitedWithCode(0), "");
}

TEST(MemoryReserve, HasAnEnd) {
  if (!kLimitsMemory) GTEST_SKIP() << "sanitizers take address space without end";
  EXPECT_EXIT(std::_Exit(ExceedReserve()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace skein
