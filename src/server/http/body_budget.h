#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace skein {

// The limit on the bytes that the bodies of all connections hold together. Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes) : left_(bytes) {}

  // The bytes that one body has taken. The destructor gives them back. The budget must outlive the
  // share.
  class Share {
   public:
    explicit Share(BodyBudget* budget) : budget_(budget) {}
    ~Share() { budget_->left_ += taken_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Grows to `bytes`. Returns false, without an effect, if the budget has not enough bytes left.
    bool GrowTo(size_t bytes) {
      if (bytes <= taken_) return true;
      const size_t more = bytes - taken_;
      size_t left = budget_->left_.load();
      do {
        if (more > left) return false;
      } while (!budget_->left_.compare_exchange_weak(left, left - more));
      taken_ = bytes;
      return true;
    }

   private:
    BodyBudget* budget_;
    size_t taken_ = 0;
  };

  size_t left() const { return left_; }

 private:
  std::atomic<size_t> left_;
};

}  // namespace skein
