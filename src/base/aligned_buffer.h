#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace skein {

// The place of a buffer's huge pages. With kAnywhere the system joins adjacent buffers: a write to
// the edge of one may make up to a huge page of the next one resident.
enum class HugePages : uint8_t {
  kAnywhere,  // all of a large buffer
  kInside,    // only pages that lie wholly in it: unwritten parts take no memory
};

// Owned memory, 64-byte aligned and zeroed; a large buffer asks for huge pages. Move-only. Running
// out of memory is a bug of the plan that asked for it: the process ends with a message.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size_bytes, HugePages huge_pages = HugePages::kAnywhere);
  // Makes a buffer in a file, to which the system can write its pages when memory is short. The
  // file is made at `path`, loses its name at once and vanishes with the buffer. Fails if there is
  // a file already or too little room for all of it.
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
