#pragma once

#include <cstddef>
#include <type_traits>

#include "base/aligned_buffer.h"

namespace skein {

// An array of zeros whose pages take memory from their first use on: scratch for the largest case,
// of which most uses need little. Fixed size, move-only. The constructor throws std::bad_alloc as
// AlignedBuffer's does; nothing is allocated later.
template <typename T>
class PagedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= 4096);  // a buffer begins with a page

 public:
  explicit PagedArray(size_t size) : memory_(size * sizeof(T), HugePages::kNone), size_(size) {}

  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  AlignedBuffer memory_;
  size_t size_;
};

}  // namespace skein
