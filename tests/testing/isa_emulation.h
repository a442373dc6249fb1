#pragma once

#include <optional>

#include "kernels/cpu/cpu_features.h"
#include "kernels/kernels.h"
#include "testing/amx_emulator.h"
#include "testing/avx_vnni_emulator.h"

namespace skein::testing {

// While alive, emulates the instructions of `isa` that this machine lacks, if there is an emulator
// of them.
class IsaEmulation {
 public:
  explicit IsaEmulation(Isa isa) {
    if (isa == Isa::kAmx && !CpuHas(isa)) amx_.emplace();
    if (isa == Isa::kAvxVnni && !CpuHas(isa)) avx_vnni_.emplace();
  }
  bool active() const { return amx_.has_value() || avx_vnni_.has_value(); }

 private:
  std::optional<ScopedAmxEmulation> amx_;
  std::optional<ScopedAvxVnniEmulation> avx_vnni_;
};

}  // namespace skein::testing
