#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

namespace skein::jinja {

// The limits of one rendering. A template or conversation that exceeds a limit fails, so that no
// rendering hangs.
struct RenderLimits {
  size_t max_work = size_t{1} << 27;  // bytes and elements that are read or written, in total
  size_t max_steps = 20'000'000;      // expressions and statements evaluated
  size_t max_output_bytes = size_t{1} << 26;  // size of the rendered text
  int max_depth = 300;                        // nested evaluations (macros that call themselves)
};

// The budget and the first error of one rendering. Code that works with values charges the budget.
// Once the state is not ok(), this code returns early with an arbitrary value.
class RenderState {
 public:
  explicit RenderState(const RenderLimits& limits) : limits_(limits) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  const RenderLimits& limits() const { return limits_; }
  size_t work() const { return work_; }

  // Records an error with the code kInvalidArgument, unless there is an earlier error.
  void Fail(std::string message) {
    if (status_.ok()) status_ = Status(StatusCode::kInvalidArgument, std::move(message));
  }
  // Fails because this engine does not reproduce the result that Python would give.
  void FailUnsupported(const std::string& what) {
    Fail("chat template: " + what + " is not supported");
  }

  // Counts work before it is done. Returns false once the budget is spent.
  bool Charge(size_t work) {
    if (work > limits_.max_work - work_) {
      work_ = limits_.max_work;
      Fail("chat template: rendering takes more than " + std::to_string(limits_.max_work) +
           " bytes of work");
    } else {
      work_ += work;
    }
    return ok();
  }
  bool Step() {
    if (++steps_ > limits_.max_steps) {
      Fail("chat template: rendering takes more than " + std::to_string(limits_.max_steps) +
           " steps");
    }
    return ok();
  }

  // Guards one level of nesting. Beyond max_depth the state fails.
  class Level {
   public:
    explicit Level(RenderState* state) : state_(state) {
      if (++state_->depth_ > state_->limits_.max_depth) {
        state_->Fail("chat template: nested deeper than " +
                     std::to_string(state_->limits_.max_depth) + " levels");
      }
    }
    ~Level() { --state_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    RenderState* state_;
  };

 private:
  const RenderLimits limits_;
  Status status_;
  size_t work_ = 0;
  size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace skein::jinja
