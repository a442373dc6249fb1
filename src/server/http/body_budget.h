#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace skein {

// The limit on the bytes that the bodies of all connections hold together. Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes) : left_(std::make_shared<std::atomic<size_t>>(bytes)) {}

  // The bytes that one body has taken. The destructor gives them back. It may outlive the
  // budget: the engine's thread can hold the last reference to a request.
  class Share {
   public:
    explicit Share(BodyBudget* budget) : left_(budget->left_) {}
    ~Share() { *left_ += taken_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Grows to `bytes`. Returns false, without an effect, if the budget has not enough bytes left.
    bool GrowTo(size_t bytes) {
      if (bytes <= taken_) return true;
      const size_t more = bytes - taken_;
      size_t left = left_->load();
      do {
        if (more > left) return false;
      } while (!left_->compare_exchange_weak(left, left - more));
      taken_ = bytes;
      return true;
    }

   private:
    std::shared_ptr<std::atomic<size_t>> left_;
    size_t taken_ = 0;
  };

  size_t left() const { return *left_; }

 private:
  std::shared_ptr<std::atomic<size_t>> left_;
};

}  // namespace skein
