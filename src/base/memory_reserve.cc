#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <new>

namespace skein {
namespace {

// A new handler gets no argument: what it needs lies here.
std::array<std::atomic<void*>, MemoryReserve::kNumSlices> slices{};  // null: given back
std::atomic<int32_t> num_missing{0};
// The shares of the thread's scopes, the innermost last. Deeper scopes count as the last that fits.
constexpr size_t kMaxScopes = 64;
thread_local std::array<ReserveScope::Share, kMaxScopes> shares{};
thread_local size_t num_scopes = 0;

void* MapSlice() {
  void* memory = mmap(nullptr, MemoryReserve::kSliceBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool GiveSliceBack() {
  for (std::atomic<void*>& slice : slices) {
    void* memory = slice.exchange(nullptr);
    if (memory == nullptr) continue;
    num_missing.fetch_add(1);
    munmap(memory, MemoryReserve::kSliceBytes);
    return true;
  }
  return false;
}

}  // namespace

bool MemoryReserve::Keep() {
  for (std::atomic<void*>& slice : slices) {
    if (slice.load() == nullptr) slice.store(MapSlice());
    if (slice.load() == nullptr) return false;
  }
  std::set_new_handler(&OnNoMemory);
  return true;
}

void MemoryReserve::OnNoMemory() {
  const auto scoped = [](ReserveScope::Share share) {
    return num_scopes > 0 && shares[std::min(num_scopes, kMaxScopes) - 1] == share;
  };
  const bool all = scoped(ReserveScope::Share::kAll) || std::uncaught_exceptions() > 0;
  const bool half = scoped(ReserveScope::Share::kHalf) && NumMissing() < kNumSlices / 2;
  if ((!all && !half) || !GiveSliceBack()) throw std::bad_alloc();
}

int32_t MemoryReserve::NumMissing() { return num_missing.load(std::memory_order_relaxed); }

bool MemoryReserve::Refill() {
  if (NumMissing() == 0) return true;
  for (std::atomic<void*>& slice : slices) {
    if (slice.load() != nullptr) continue;
    void* memory = MapSlice();
    if (memory == nullptr) return false;
    void* empty = nullptr;
    if (slice.compare_exchange_strong(empty, memory)) {
      num_missing.fetch_sub(1);
    } else {
      munmap(memory, kSliceBytes);  // another thread took this one
    }
  }
  return NumMissing() == 0;
}

ReserveScope::ReserveScope(Share share) {
  (void)MemoryReserve::Refill();  // not in the handler: it could go on for ever
  if (num_scopes < kMaxScopes) shares[num_scopes] = share;
  ++num_scopes;
}

ReserveScope::~ReserveScope() { --num_scopes; }

}  // namespace skein
