#include "kernels/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"

namespace skein {
namespace {

constexpr Isa kAllIsas[] = {Isa::kAmx,     Isa::kAvx512Bf16, Isa::kAvx512Bf16Fma, Isa::kAvx512,
                            Isa::kAvxVnni, Isa::kAvx2,       Isa::kScalar};

}  // namespace

const char* NameOf(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return "amx";
    case Isa::kAvx512Bf16:
      return "avx512-bf16";
    case Isa::kAvx512Bf16Fma:
      return "avx512-bf16-fma";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvxVnni:
      return "avx-vnni";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kScalar:
      break;
  }
  return "scalar";
}

Result<std::unique_ptr<Kernels>> MakeKernels(Isa isa) {
  if (!CpuHas(isa)) {
    return Status(StatusCode::kUnsupported,
                  std::string("this machine lacks the instruction set ") + NameOf(isa));
  }
  return MakeCpuKernels(isa);
}

std::vector<Isa> IsasHere() {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (CpuHas(isa)) isas.push_back(isa);
  }
  const auto dots = std::find(isas.begin(), isas.end(), Isa::kAvx512Bf16);
  if (dots != isas.end() && !CpuHasFastBf16Dots()) std::iter_swap(dots, dots + 1);
  return isas;
}

Result<Isa> SelectIsa() {
  const char* forced = std::getenv("SKEIN_FORCE_ISA");
  if (forced == nullptr) return IsasHere().front();
  for (const Isa isa : kAllIsas) {
    if (std::string_view(forced) != NameOf(isa)) continue;
    if (CpuHas(isa)) return isa;
    return Status(StatusCode::kUnsupported,
                  std::string("SKEIN_FORCE_ISA names ") + forced + ", which this machine lacks",
                  "SKEIN_FORCE_ISA");
  }
  return Status(
      StatusCode::kInvalidArgument,
      std::string("SKEIN_FORCE_ISA is \"") + forced +
          "\"; allowed: amx, avx512-bf16, avx512-bf16-fma, avx512, avx-vnni, avx2, scalar",
      "SKEIN_FORCE_ISA");
}

}  // namespace skein
