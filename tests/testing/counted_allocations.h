#pragma once

// Counts what the program takes from the heap. Replaces operator new and delete, so one source file
// of a test program includes it, and every allocation of the program counts.

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "testing/failing_allocations.h"

namespace {

std::atomic<int64_t> num_allocations{0};
std::atomic<int64_t> live_bytes{0};

// As operator new: asks the new handler, and throws without one.
void* CountedAllocate(size_t size) {
  void* memory = nullptr;
  while (skein::testing::FailingAllocations::Fails() || (memory = std::malloc(size)) == nullptr) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  ++num_allocations;
  live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void CountedFree(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return CountedAllocate(size); }
void* operator new[](size_t size) { return CountedAllocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return CountedAllocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
void operator delete(void* memory) noexcept { CountedFree(memory); }
void operator delete[](void* memory) noexcept { CountedFree(memory); }
void operator delete(void* memory, size_t) noexcept { CountedFree(memory); }
void operator delete[](void* memory, size_t) noexcept { CountedFree(memory); }
