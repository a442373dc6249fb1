#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace skein::testing {

// The instruction sets of this machine, as parameters of a test, and their names.
inline std::vector<Isa> IsasHere() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (MakeKernels(isa).ok()) isas.push_back(isa);
  }
  return isas;
}

inline std::string IsaName(const ::testing::TestParamInfo<Isa>& test) { return NameOf(test.param); }

}  // namespace skein::testing
