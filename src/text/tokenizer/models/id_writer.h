#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "skein/request.h"

namespace skein {

// Collects ids and appends them to a vector in large steps, so that an id costs one store and no
// check of the vector's capacity. The vector holds all ids after Flush or after the writer's
// destruction.
class IdWriter {
 public:
  // The number of ids that may be written at cursor() between two calls of Advance.
  static constexpr size_t kSlack = 16;

  explicit IdWriter(std::vector<TokenId>* out) : out_(*out) {}
  ~IdWriter() { Flush(); }
  IdWriter(const IdWriter&) = delete;
  IdWriter& operator=(const IdWriter&) = delete;

  void Put(TokenId id) {
    buffer_[size_] = id;
    Advance(1);
  }
  // A pointer to room for kSlack ids. Advance keeps the first `count` ids that were written there.
  TokenId* cursor() { return buffer_.data() + size_; }
  void Advance(size_t count) {
    size_ += count;
    if (size_ > kCapacity) Flush();
  }
  void Flush() {
    out_.insert(out_.end(), buffer_.data(), buffer_.data() + size_);
    size_ = 0;
  }

 private:
  static constexpr size_t kCapacity = 1024;

  std::vector<TokenId>& out_;
  size_t size_ = 0;
  std::array<TokenId, kCapacity + kSlack>
      buffer_;  // not initialized: a call may need only a small part of it
};

}  // namespace skein
