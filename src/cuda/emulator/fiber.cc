#include "cuda/emulator/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace skein::cuda {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;

// Thrown in a paused function that will not be resumed, to unwind it.
struct Abandoned {};

// Leaves the stack to the Fiber when the context on it ends.
struct KeepStack {
  static void deallocate(boost::context::stack_context&) {}
};

}  // namespace

struct Fiber::Stack {
  std::vector<std::byte> memory = std::vector<std::byte>(kStackBytes);
  const std::function<void()>* fn = nullptr;
  boost::context::fiber inside;   // the function while it is paused
  boost::context::fiber outside;  // the caller of Resume while the function runs
  bool done = true;
  bool abandoned = false;

  // Tell a sanitizer of switches to the fiber's stack and back: before a switch, and after it on
  // the new stack.
#if defined(__SANITIZE_ADDRESS__)
  void* inside_shadow = nullptr;
  void* outside_shadow = nullptr;
  const void* outside_memory = nullptr;
  size_t outside_bytes = 0;
  void BeforeEnter() {
    __sanitizer_start_switch_fiber(&outside_shadow, memory.data(), memory.size());
  }
  void AfterEnter() {
    __sanitizer_finish_switch_fiber(inside_shadow, &outside_memory, &outside_bytes);
  }
  void BeforeLeave() {
    __sanitizer_start_switch_fiber(done ? nullptr : &inside_shadow, outside_memory, outside_bytes);
  }
  void AfterLeave() {
    __sanitizer_finish_switch_fiber(outside_shadow, nullptr, nullptr);
    if (done) inside_shadow = nullptr;
  }
#elif defined(__SANITIZE_THREAD__)
  void* const inside_thread = __tsan_create_fiber(0);
  void* outside_thread = nullptr;
  ~Stack() { __tsan_destroy_fiber(inside_thread); }
  void BeforeEnter() {
    outside_thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(inside_thread, 0);
  }
  void AfterEnter() {}
  void BeforeLeave() { __tsan_switch_to_fiber(outside_thread, 0); }
  void AfterLeave() {}
#else
  void BeforeEnter() {}
  void AfterEnter() {}
  void BeforeLeave() {}
  void AfterLeave() {}
#endif
};

Fiber::Fiber() : stack_(std::make_unique<Stack>()) {}

Fiber::~Fiber() {
  stack_->abandoned = true;
  if (!stack_->done) Resume();
}

void Fiber::Start(const std::function<void()>* fn) {
  SKEIN_CHECK(stack_->done);
  Stack& stack = *stack_;
  stack.fn = fn;
  stack.done = false;
  boost::context::stack_context context;
  context.size = stack.memory.size();
  context.sp = stack.memory.data() + stack.memory.size();
  const boost::context::preallocated memory(context.sp, context.size, context);
  stack.inside = boost::context::fiber(std::allocator_arg, memory, KeepStack(),
                                       [&stack](boost::context::fiber&& outside) {
                                         stack.AfterEnter();
                                         stack.outside = std::move(outside);
                                         try {
                                           if (!stack.abandoned) (*stack.fn)();
                                         } catch (const Abandoned&) {
                                         }
                                         stack.done = true;
                                         stack.BeforeLeave();
                                         return std::move(stack.outside);
                                       });
}

bool Fiber::Resume() {
  SKEIN_CHECK(!stack_->done);
  stack_->BeforeEnter();
  stack_->inside = std::move(stack_->inside).resume();
  stack_->AfterLeave();
  return stack_->done;
}

void Fiber::Pause() {
  Stack& stack = *stack_;
  stack.BeforeLeave();
  stack.outside = std::move(stack.outside).resume();
  stack.AfterEnter();
  if (stack.abandoned) throw Abandoned();
}

}  // namespace skein::cuda
