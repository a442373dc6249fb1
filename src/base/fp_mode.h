#pragma once

#include <cstdint>

namespace skein {

// Sets the engine's floating-point mode for the calling thread as long as the object lives:
// denormals flushed to zero on input and output, round to nearest even, no traps. The destructor
// restores the former mode. Costs next to nothing if the mode is set already (docs/numerics.md).
class ScopedFpMode {
 public:
  ScopedFpMode() : former_(__builtin_ia32_stmxcsr()) {
    if (!IsMode(former_)) __builtin_ia32_ldmxcsr(kMode);
  }
  ~ScopedFpMode() {
    if (!IsMode(former_)) __builtin_ia32_ldmxcsr(former_);
  }
  ScopedFpMode(const ScopedFpMode&) = delete;
  ScopedFpMode& operator=(const ScopedFpMode&) = delete;

  // Whether the calling thread is in this mode now.
  static bool IsSet() { return IsMode(__builtin_ia32_stmxcsr()); }

 private:
  static constexpr uint32_t kStatusFlags = 0x3f;
  static constexpr uint32_t kMode = 0x9fc0;  // FTZ | all exceptions masked | DAZ

  static bool IsMode(uint32_t mxcsr) { return (mxcsr & ~kStatusFlags) == kMode; }

  const uint32_t former_;
};

}  // namespace skein
