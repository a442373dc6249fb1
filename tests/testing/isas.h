#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_features.h"
#include "kernels/kernels.h"

namespace skein::testing {

// Instruction sets as parameters of a test, and their names.

// Those of this machine, and the matrix unit's code where the processor has no such unit, but can
// run the AVX-512 code around it: to be emulated (testing/amx_emulator.h).
inline std::vector<Isa> IsasHereOrEmulated() {
  std::vector<Isa> isas = IsasHere();
  if (CpuHas(Isa::kAvx512) && !CpuHas(Isa::kAmx)) isas.push_back(Isa::kAmx);
  return isas;
}

// And AVX-VNNI, of which integer products alone are code of their own, where it is to be emulated
// (testing/avx_vnni_emulator.h).
inline std::vector<Isa> IntegerIsasHereOrEmulated() {
  std::vector<Isa> isas = IsasHereOrEmulated();
  if (CpuHas(Isa::kAvx2) && !CpuHas(Isa::kAvxVnni)) isas.push_back(Isa::kAvxVnni);
  return isas;
}

// Its name as a part of a test's, where hyphens are not allowed.
inline std::string TestNameOf(Isa isa) {
  std::string name = NameOf(isa);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
inline std::string IsaName(const ::testing::TestParamInfo<Isa>& test) {
  return TestNameOf(test.param);
}

}  // namespace skein::testing
