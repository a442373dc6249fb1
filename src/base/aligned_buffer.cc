#include "base/aligned_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kPageBytes = size_t{4} << 10;

void* TryMapPages(size_t size_bytes) {
  return mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Anonymous pages come zeroed and page-aligned, and cost nothing until they are touched. Fails as
// operator new does.
void* MapPages(size_t size_bytes) {
  while (true) {
    void* memory = TryMapPages(size_bytes);
    if (memory != MAP_FAILED) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// Buffers side by side in one mapping, so that huge pages go across their borders: the weights of a
// small model, or of an expert, are less than a huge page. Each buffer is unmapped on its own, and
// its addresses are not used again.
class SharedMapping {
 public:
  static constexpr size_t kBytes = size_t{64} << 20;

  // The next pages; null if there is no room for another mapping.
  std::byte* Take(size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    size_bytes = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (size_bytes > left_) {
      void* memory = TryMapPages(kBytes);
      if (memory == MAP_FAILED) return nullptr;
      if (left_ > 0) (void)munmap(next_, left_);
      (void)madvise(memory, kBytes, MADV_HUGEPAGE);
      next_ = static_cast<std::byte*>(memory);
      left_ = kBytes;
    }
    left_ -= size_bytes;
    return std::exchange(next_, next_ + size_bytes);
  }

 private:
  std::mutex mutex_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

SharedMapping& SharedPages() {
  static SharedMapping mapping;
  return mapping;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes, HugePages huge_pages) : size_(size_bytes) {
  if (size_bytes == 0) return;
  const bool shares = huge_pages == HugePages::kAnywhere && size_bytes >= kPageBytes &&
                      size_bytes <= SharedMapping::kBytes / 4;
  if (shares) data_ = SharedPages().Take(size_bytes);
  if (data_ != nullptr) return;
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
