#pragma once

// Intel's matrix unit (AMX) in software, for tests: on a processor without one, its instructions
// raise SIGILL; the handler installed here decodes and executes them and steps over them. So the
// AMX kernels run, bit for bit, on machines that have the AVX-512 around them. Never part of the
// product.
// Semantics: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "LDTILECFG",
// "TILELOADD", "TILESTORED", "TILEZERO", "TILERELEASE", "TDPBF16PS", "TDPBSSD".

#include <signal.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "base/fp_mode.h"
#include "testing/vex_instruction.h"

namespace skein::testing {

// Eight tiles of up to 16 rows of 64 bytes, and the instructions on them. Violations of the
// manual's rules (a fault on the machine) return false and change nothing.
class EmulatedTiles {
 public:
  static constexpr int kNumTiles = 8;
  static constexpr int kMaxRows = 16;
  static constexpr int kMaxRowBytes = 64;

  // `config`: the 64 bytes of LDTILECFG.
  bool LoadConfig(const uint8_t* config) {
    if (config[0] == 0) {
      Release();
      return true;
    }
    if (config[0] != 1 || config[1] != 0) return false;
    for (int i = 2; i < 16; ++i) {
      if (config[i] != 0) return false;
    }
    Tile tiles[kNumTiles] = {};
    for (int t = 0; t < 16; ++t) {
      uint16_t row_bytes;
      std::memcpy(&row_bytes, config + 16 + 2 * t, 2);
      const uint8_t rows = config[48 + t];
      if (t >= kNumTiles
              ? row_bytes != 0 || rows != 0
              : row_bytes > kMaxRowBytes || rows > kMaxRows || (row_bytes == 0) != (rows == 0)) {
        return false;
      }
      if (t < kNumTiles) tiles[t] = {rows, row_bytes, {}};
    }
    std::memcpy(tiles_, tiles, sizeof(tiles_));
    configured_ = true;
    return true;
  }

  void Release() {
    std::memset(tiles_, 0, sizeof(tiles_));
    configured_ = false;
  }

  bool Zero(int t) {
    if (!Valid(t)) return false;
    std::memset(tiles_[t].data, 0, sizeof(tiles_[t].data));
    return true;
  }

  bool Load(int t, const uint8_t* base, int64_t stride_bytes) {
    if (!Zero(t)) return false;
    for (int r = 0; r < tiles_[t].rows; ++r) {
      std::memcpy(tiles_[t].data[r], base + r * stride_bytes, tiles_[t].row_bytes);
    }
    return true;
  }

  bool Store(int t, uint8_t* base, int64_t stride_bytes) const {
    if (!Valid(t)) return false;
    for (int r = 0; r < tiles_[t].rows; ++r) {
      std::memcpy(base + r * stride_bytes, tiles_[t].data[r], tiles_[t].row_bytes);
    }
    return true;
  }

  bool DotInt8(int c, int a, int b) {
    if (!Multiplies(c, a, b)) return false;
    const int quads = tiles_[a].row_bytes / 4;
    for (int m = 0; m < tiles_[c].rows; ++m) {
      for (int n = 0; n < tiles_[c].row_bytes / 4; ++n) {
        uint32_t sum;  // wraps around
        std::memcpy(&sum, &tiles_[c].data[m][4 * n], 4);
        for (int k = 0; k < 4 * quads; ++k) {
          const auto x = static_cast<int8_t>(tiles_[a].data[m][k]);
          const auto y = static_cast<int8_t>(tiles_[b].data[k / 4][4 * n + k % 4]);
          sum += static_cast<uint32_t>(x * y);
        }
        std::memcpy(&tiles_[c].data[m][4 * n], &sum, 4);
      }
    }
    return true;
  }

  bool DotBf16(int c, int a, int b) {
    if (!Multiplies(c, a, b)) return false;
    const int pairs = tiles_[a].row_bytes / 4;
    const int columns = tiles_[c].row_bytes / 4;
    const ScopedFpMode fp_mode;  // always flushes denormals, rounds to nearest
    for (int m = 0; m < tiles_[c].rows; ++m) {
      for (int n = 0; n < columns; ++n) {
        float even = 0.0f, odd = 0.0f;
        for (int k = 0; k < pairs; ++k) {
          even = std::fma(Element(a, m, 2 * k), Element(b, k, 2 * n), even);
          odd = std::fma(Element(a, m, 2 * k + 1), Element(b, k, 2 * n + 1), odd);
        }
        float sum;
        std::memcpy(&sum, &tiles_[c].data[m][4 * n], 4);
        sum = sum + (even + odd);
        std::memcpy(&tiles_[c].data[m][4 * n], &sum, 4);
      }
    }
    return true;
  }

 private:
  struct Tile {
    uint8_t rows;
    uint16_t row_bytes;
    uint8_t data[kMaxRows][kMaxRowBytes];
  };

  bool Valid(int t) const { return configured_ && t >= 0 && t < kNumTiles && tiles_[t].rows > 0; }
  // Whether the shapes of c = c + a · b go together; groups of four bytes are what is multiplied.
  bool Multiplies(int c, int a, int b) const {
    if (!Valid(c) || !Valid(a) || !Valid(b) || c == a || c == b || a == b) return false;
    return tiles_[c].rows == tiles_[a].rows && tiles_[b].rows == tiles_[a].row_bytes / 4 &&
           tiles_[b].row_bytes == tiles_[c].row_bytes;
  }
  float Element(int t, int row, int index) const {
    Bf16 value;
    std::memcpy(&value, &tiles_[t].data[row][2 * index], 2);
    return ToFloat(value);
  }

  bool configured_ = false;
  Tile tiles_[kNumTiles] = {};
};

// While alive, SIGILL is answered by executing the matrix instruction that raised it, in each
// thread on tiles of its own. Any other illegal instruction ends the process as before. One at a
// time.
class ScopedAmxEmulation {
 public:
  // Matrix instructions that this thread has executed in software.
  static int64_t num_executed() { return State().num_executed; }

 private:
  struct ThreadState {
    EmulatedTiles tiles;
    int64_t num_executed = 0;
  };
  static ThreadState& State() {
    thread_local ThreadState state;
    return state;
  }

  static bool Execute(const VexInstruction& in, EmulatedTiles& tiles) {
    if (in.w || in.l) return false;
    constexpr int kNone = 0, k66 = 1, kF3 = 2, kF2 = 3;
    const bool memory = in.mod != 3;
    auto* bytes = reinterpret_cast<uint8_t*>(in.address);
    if (in.opcode == 0x49 && in.pp == kNone && memory && in.reg == 0) {
      return tiles.LoadConfig(bytes + in.index);
    }
    if (in.opcode == 0x49 && in.pp == kNone && !memory && in.reg == 0 && in.rm == 0) {
      tiles.Release();
      return true;
    }
    if (in.opcode == 0x49 && in.pp == kF2 && !memory && in.rm == 0) return tiles.Zero(in.reg);
    if (in.opcode == 0x4B && memory && in.has_sib) {
      if (in.pp == kF2 || in.pp == k66) return tiles.Load(in.reg, bytes, in.index);
      if (in.pp == kF3) return tiles.Store(in.reg, bytes, in.index);
    }
    if (in.opcode == 0x5C && in.pp == kF3 && !memory) return tiles.DotBf16(in.reg, in.rm, in.vvvv);
    if (in.opcode == 0x5E && in.pp == kF2 && !memory) return tiles.DotInt8(in.reg, in.rm, in.vvvv);
    return false;
  }

  static void OnIllegalInstruction(int, siginfo_t*, void* context) {
    gregset_t& gregs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    VexInstruction decoded;
    ThreadState& state = State();
    if (!decoded.Decode(gregs) || !Execute(decoded, state.tiles)) {
      return ScopedIllegalInstructionHandler::GiveUp();
    }
    ++state.num_executed;
    gregs[REG_RIP] += decoded.length;
  }

  const ScopedIllegalInstructionHandler handler_{&OnIllegalInstruction};
};

}  // namespace skein::testing
