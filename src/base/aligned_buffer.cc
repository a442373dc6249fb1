#include "base/aligned_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// Anonymous pages come zeroed and page-aligned, and cost nothing until they are touched. Fails as
// operator new does.
void* MapPages(size_t size_bytes) {
  while (true) {
    void* memory =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes, HugePages huge_pages) : size_(size_bytes) {
  if (size_bytes == 0) return;
  data_ = static_cast<std::byte*>(MapPages(size_bytes));
  if (size_bytes < kHugePageBytes || huge_pages == HugePages::kNone) return;
  size_t skip = 0, length = size_bytes;
  if (huge_pages == HugePages::kInside) {
    skip = -reinterpret_cast<uintptr_t>(data_) % kHugePageBytes;
    length = (size_bytes - skip) / kHugePageBytes * kHugePageBytes;
  }
  if (length > 0) (void)madvise(data_ + skip, length, MADV_HUGEPAGE);
}

Result<AlignedBuffer> AlignedBuffer::InFile(const std::string& path, size_t size_bytes) {
  const auto failed = [&](int error) {
    return Status(StatusCode::kInvalidArgument, "a file of " + std::to_string(size_bytes) +
                                                    " bytes cannot be made at " + path + ": " +
                                                    std::strerror(error));
  };
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(errno);
  (void)unlink(path.c_str());
  AlignedBuffer buffer;
  // The file's space is reserved now: a later write to a page without space would end the process.
  const int error = posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
  void* memory = error != 0
                     ? MAP_FAILED
                     : mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int mapping_error = errno;
  (void)close(file);
  if (memory == MAP_FAILED) return failed(error != 0 ? error : mapping_error);
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = size_bytes;
  return buffer;
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
