#include "kernels/cpu/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/ops.h"

namespace skein {
namespace {

// Clang 16 does not know the name of f16c.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool HasAvx512Bf16() { return HasAvx512() && __builtin_cpu_supports("avx512bf16"); }

bool HasAvxVnni() {
  constexpr unsigned kAvxVnni = 1u << 4;  // leaf 7, subleaf 1, EAX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & kAvxVnni) != 0;
}

bool HasAmx() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  constexpr unsigned kAll = kAmxBf16 | kAmxTile | kAmxInt8;  // leaf 7, EDX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & kAll) != kAll) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool CpuHas(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return HasAvx512Bf16() && HasAmx();
    case Isa::kAvx512Bf16:
    case Isa::kAvx512Bf16Fma:
      return HasAvx512Bf16();
    case Isa::kAvx512:
      return HasAvx512();
    case Isa::kAvxVnni:
      return CpuHas(Isa::kAvx2) && HasAvxVnni();
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c();
    case Isa::kScalar:
      break;
  }
  return true;
}

bool CpuHasFastBf16Dots() {
  static const bool fast = Avx512Bf16DotsAreFast();
  return fast;
}

bool CpuHasVnni() { return __builtin_cpu_supports("avx512vnni"); }

}  // namespace skein
