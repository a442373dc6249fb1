#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace skein {

// Which pages of a buffer are huge pages. With kAnywhere buffers of up to 16 MiB lie side by side
// in mappings of 64 MiB: a write to the edge of a buffer may make up to a huge page of the next
// buffer resident.
enum class HugePages : uint8_t {
  kAnywhere,  // all, also across the borders of buffers
  kInside,    // only huge pages that lie wholly in it: unwritten parts use no memory
  kNone,      // for memory of which most uses write a small part
};

// Owned memory, 64-byte aligned and zeroed, which asks for huge pages. Move-only. Without
// memory the constructor throws std::bad_alloc, as every other allocation does.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size_bytes, HugePages huge_pages = HugePages::kAnywhere);
  // Makes a buffer in a file, so that the system can write the buffer's pages to the file when
  // memory is short. The file is made at `path`, loses its name at once and vanishes with the
  // buffer. Fails if a file exists at `path`, or if there is too little space for the buffer.
  static Result<AlignedBuffer> InFile(const std::string& path, size_t size_bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace skein
