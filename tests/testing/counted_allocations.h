#pragma once

// Counts what the program takes from the heap. Replaces operator new and delete, so one source file
// of a test program includes it, and every allocation of the program counts.

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> num_allocations{0};
std::atomic<int64_t> live_bytes{0};

void* CountedAllocate(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
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
void* operator new(size_t size, const std::nothrow_t&) noexcept { return CountedAllocate(size); }
void operator delete(void* memory) noexcept { CountedFree(memory); }
void operator delete[](void* memory) noexcept { CountedFree(memory); }
void operator delete(void* memory, size_t) noexcept { CountedFree(memory); }
void operator delete[](void* memory, size_t) noexcept { CountedFree(memory); }
