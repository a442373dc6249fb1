#pragma once

#include <functional>
#include <memory>

namespace skein::cuda {

// A function that runs on a stack of its own and can pause inside. The stack and its memory are
// used again by the next function. Not thread-safe.
class Fiber {
 public:
  Fiber();
  // A paused function is unwound.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // REQUIRES: no function is paused. `fn` outlives its run.
  void Start(const std::function<void()>* fn);
  // Runs the function until it pauses (false) or returns (true). REQUIRES: it has been started and
  // has not returned.
  bool Resume();
  // Called by the function alone: returns to Resume.
  void Pause();

 private:
  struct Stack;
  std::unique_ptr<Stack> stack_;
};

}  // namespace skein::cuda
