#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace skein {

// Where a buffer's huge pages lie. The system joins neighbouring buffers of the first kind: writing
// to the edge of one may make up to a huge page of the next resident.
enum class HugePages : uint8_t {
  kAnywhere,  // all of a large buffer
  kInside,    // those that are its own alone: what is not written takes no memory
};

// Memory of its own, 64-byte aligned, zeroed, with huge pages advised where large. Move-only.
// Running out of memory is a bug of the plan that asked for it: the process ends with a message.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size_bytes, HugePages huge_pages = HugePages::kAnywhere);
  // Such memory in a file, where the system puts the pages that it needs the room of. The file is
  // made at `path`, loses its name at once and goes with the buffer. Fails where there is a file
  // already, or not enough room for all of it.
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
