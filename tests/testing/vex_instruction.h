#pragma once

// Decodes instructions with a VEX prefix of three bytes that raised SIGILL, and handles the signal,
// for emulators of what a test machine lacks. Never part of the product. Format: Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, "VEX prefix".

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace skein::testing {

// One instruction of the map 0F38: C4 [R X B map] [W vvvv L pp] opcode ModRM [SIB] [disp8 |
// disp32].
struct VexInstruction {
  bool w = false, l = false;
  int pp = 0, opcode = 0, mod = 0, reg = 0, rm = 0, vvvv = 0;
  uint64_t address = 0;  // base + displacement, if mod is not 3
  int64_t index = 0;     // scaled
  bool has_sib = false;
  int length = 0;

  // Decodes the instruction at the instruction pointer. Returns false if it is of another kind.
  bool Decode(const gregset_t& gregs) {
    *this = {};
    constexpr int kMap0F38 = 2;
    const auto* code = reinterpret_cast<const uint8_t*>(gregs[REG_RIP]);
    if (code[0] != 0xC4 || (code[1] & 0x1f) != kMap0F38) return false;
    const bool r = !(code[1] & 0x80), x = !(code[1] & 0x40), b = !(code[1] & 0x20);
    w = code[2] & 0x80;
    l = code[2] & 4;
    vvvv = ~(code[2] >> 3) & 15;
    pp = code[2] & 3;
    opcode = code[3];
    mod = code[4] >> 6;
    reg = (code[4] >> 3 & 7) | r << 3;
    rm = code[4] & 7;
    length = 5;
    if (mod == 3) {
      rm |= b << 3;
      return true;
    }
    int displacement_size = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    int base = rm;
    if (rm == 4) {
      const uint8_t sib = code[length++];
      const int of_index = (sib >> 3 & 7) | x << 3;
      has_sib = true;
      if (of_index != 4) index = static_cast<int64_t>(Register(gregs, of_index)) << (sib >> 6);
      base = sib & 7;
    }
    const bool no_base = base == 5 && mod == 0;
    if (no_base) displacement_size = 4;
    const int64_t displacement = Displacement(code + length, displacement_size);
    length += displacement_size;
    uint64_t start = 0;
    if (!no_base) {
      start = Register(gregs, base | b << 3);
    } else if (!has_sib) {  // relative to the next instruction
      start = static_cast<uint64_t>(gregs[REG_RIP]) + length;
    }
    address = start + displacement;
    return true;
  }

 private:
  static uint64_t Register(const gregset_t& gregs, int number) {
    constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<uint64_t>(gregs[kOrder[number]]);
  }

  static int64_t Displacement(const uint8_t* p, int size) {
    if (size == 1) return static_cast<int8_t>(*p);
    int32_t value = 0;
    if (size == 4) std::memcpy(&value, p, 4);
    return value;
  }
};

// While alive, calls `handler` for SIGILL. One at a time.
class ScopedIllegalInstructionHandler {
 public:
  explicit ScopedIllegalInstructionHandler(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGILL, &action, &former_) != 0) std::abort();
  }
  ~ScopedIllegalInstructionHandler() { sigaction(SIGILL, &former_, nullptr); }
  ScopedIllegalInstructionHandler(const ScopedIllegalInstructionHandler&) = delete;
  ScopedIllegalInstructionHandler& operator=(const ScopedIllegalInstructionHandler&) = delete;

  // For a handler that does not know the instruction: it runs again, and ends the process.
  static void GiveUp() { signal(SIGILL, SIG_DFL); }

 private:
  struct sigaction former_;
};

}  // namespace skein::testing
