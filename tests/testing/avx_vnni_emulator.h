#pragma once

// vpdpbusd on 256 bits (AVX-VNNI) in software, for tests: on a processor without it, it raises
// SIGILL; the handler installed here executes it and steps over it. Never part of the product.
// Semantics: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "VPDPBUSD";
// the place of registers in a signal's frame: volume 1, "XSAVE area".

#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "testing/vex_instruction.h"

namespace skein::testing {

// While alive, SIGILL is answered by executing the vpdpbusd that raised it. Any other illegal
// instruction ends the process as before. One at a time.
class ScopedAvxVnniEmulation {
 public:
  // The instructions that were executed in software, by all threads together.
  static int64_t num_executed() { return num_executed_; }

 private:
  // The vector registers in a signal's frame: the lower halves where FXSAVE has them, the upper
  // ones in a part of their own.
  class VectorRegisters {
   public:
    explicit VectorRegisters(ucontext_t* context)
        : area_(reinterpret_cast<uint8_t*>(context->uc_mcontext.fpregs)) {}
    void Read(int number, uint8_t* bytes) const {
      std::memcpy(bytes, area_ + kLower + 16 * number, 16);
      // Parts that are not in the area are zeros.
      (States() & 1u << kAvx) != 0 ? std::memcpy(bytes + 16, area_ + upper_ + 16 * number, 16)
                                   : std::memset(bytes + 16, 0, 16);
    }
    void Write(int number, const uint8_t* bytes) {
      if ((States() & 1u << kAvx) == 0) {
        std::memset(area_ + upper_, 0, 16 * 16);
        const uint64_t states = States() | 1u << kAvx;
        std::memcpy(area_ + kHeader, &states, sizeof(states));
      }
      std::memcpy(area_ + kLower + 16 * number, bytes, 16);
      std::memcpy(area_ + upper_ + 16 * number, bytes + 16, 16);
    }

   private:
    static constexpr int kAvx = 2, kLower = 160, kHeader = 512;
    uint64_t States() const {
      uint64_t states;
      std::memcpy(&states, area_ + kHeader, sizeof(states));
      return states;
    }
    static uint32_t PlaceOfUpper() {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      __get_cpuid_count(0xd, kAvx, &eax, &ebx, &ecx, &edx);
      return ebx;
    }
    static inline const uint32_t upper_ = PlaceOfUpper();
    uint8_t* area_;
  };

  static bool Decode(const gregset_t& gregs, VexInstruction* in) {
    constexpr int k66 = 1, kVpdpbusd = 0x50;
    return in->Decode(gregs) && in->opcode == kVpdpbusd && in->pp == k66 && !in->w && in->l;
  }

  // Executes all of them up to the next other instruction, since a signal takes longer than they
  // do.
  static void OnIllegalInstruction(int, siginfo_t*, void* context) {
    auto* const at = static_cast<ucontext_t*>(context);
    gregset_t& gregs = at->uc_mcontext.gregs;
    VexInstruction in;
    if (!Decode(gregs, &in)) {
      return ScopedIllegalInstructionHandler::GiveUp();
    }
    VectorRegisters registers(at);
    do {
      Execute(in, registers);
      ++num_executed_;
      gregs[REG_RIP] += in.length;
    } while (Decode(gregs, &in));
  }

  static void Execute(const VexInstruction& in, VectorRegisters& registers) {
    uint8_t sums[32], unsigned_bytes[32], signed_bytes[32];
    registers.Read(in.reg, sums);
    registers.Read(in.vvvv, unsigned_bytes);
    if (in.mod == 3) {
      registers.Read(in.rm, signed_bytes);
    } else {
      std::memcpy(signed_bytes, reinterpret_cast<const void*>(in.address + in.index), 32);
    }
    for (int i = 0; i < 8; ++i) {
      uint32_t sum;  // wraps around
      std::memcpy(&sum, sums + 4 * i, 4);
      for (int j = 4 * i; j < 4 * i + 4; ++j) {
        sum += static_cast<uint32_t>(unsigned_bytes[j] * static_cast<int8_t>(signed_bytes[j]));
      }
      std::memcpy(sums + 4 * i, &sum, 4);
    }
    registers.Write(in.reg, sums);
  }

  static inline std::atomic<int64_t> num_executed_ = 0;
  const ScopedIllegalInstructionHandler handler_{&OnIllegalInstruction};
};

}  // namespace skein::testing
