#pragma once

#include <functional>
#include <memory>

namespace skein::cuda {

// A function with its own stack, which can pause inside. The next function uses the same stack and
// memory again. Not thread-safe.
class Fiber {
 public:
  Fiber();
  // Unwinds a paused function.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Sets the function. REQUIRES: no function is paused. `fn` outlives its run.
  void Start(const std::function<void()>* fn);
  // Runs the function until it pauses (false) or returns (true). REQUIRES: the function has been
  // started and has not returned.
  bool Resume();
  // Called only by the function itself: returns to the caller of Resume.
  void Pause();

 private:
  struct Stack;
  std::unique_ptr<Stack> stack_;
};

}  // namespace skein::cuda
