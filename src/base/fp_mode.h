#pragma once

#include <cstdint>

namespace skein {

// While alive, the thread that made it runs in the engine's one floating-point mode: denormals
// flushed to zero on input and output, round to nearest even, no traps. The former mode returns
// with the destructor. Everything that calls the kernels runs in this mode, or bits would depend on
// the thread (docs/numerics.md).
class ScopedFpMode {
 public:
  ScopedFpMode() : saved_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(kMode); }
  ~ScopedFpMode() { __builtin_ia32_ldmxcsr(saved_); }
  ScopedFpMode(const ScopedFpMode&) = delete;
  ScopedFpMode& operator=(const ScopedFpMode&) = delete;

  // True if the calling thread is in the mode now.
  static bool IsSet() { return (__builtin_ia32_stmxcsr() & ~kStatusFlags) == kMode; }

 private:
  static constexpr uint32_t kStatusFlags = 0x3f;
  static constexpr uint32_t kMode = 0x9fc0;  // FTZ | all exceptions masked | DAZ

  uint32_t saved_;
};

}  // namespace skein
