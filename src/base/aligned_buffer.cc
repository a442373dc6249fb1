#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <utility>

#include "base/check.h"

namespace skein {
namespace {
constexpr size_t kHugePageBytes = size_t{2} << 20;
}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  // Anonymous pages come zeroed and page-aligned, and cost nothing until they are touched.
  void* memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SKEIN_CHECK(memory != MAP_FAILED && "out of memory");
  if (size_bytes >= kHugePageBytes) (void)madvise(memory, size_bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(memory);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace skein
