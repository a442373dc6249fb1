#pragma once

// Launches of kernels on the emulator, in many orders of turns.

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "cuda/kernels/emulated_kernels.h"
#include "testing/random_values.h"

namespace skein::testing {

inline std::vector<cuda::TurnOrder> TurnOrders() {
  using enum cuda::TurnOrder::Kind;
  return {{kForward, 0, false},
          {kForward, 0, true},
          {kReverse, 0, false},
          {kShuffled, TestSeed(), false},
          {kShuffled, TestSeed() + 1, true}};
}

// Runs the launch once in each order, each time on `memory` as it is now, and expects the same bits
// in it. The last result stays there.
template <typename T>
void ExpectSameInAnyOrder(const cuda::Launch& launch, std::span<T> memory) {
  const std::vector<T> before(memory.begin(), memory.end());
  std::vector<T> expected;
  for (const cuda::TurnOrder& order : TurnOrders()) {
    std::memcpy(memory.data(), before.data(), memory.size_bytes());
    cuda::Emulator emulator(order);
    const Status status = cuda::RunEmulated(launch, emulator);
    ASSERT_TRUE(status.ok()) << status.message();
    if (expected.empty()) expected.assign(memory.begin(), memory.end());
    ASSERT_EQ(std::memcmp(memory.data(), expected.data(), memory.size_bytes()), 0)
        << "the order of turns changes the result: kind " << static_cast<int>(order.kind)
        << ", seed " << order.seed << ", early copies " << order.early_copies;
  }
}

// Runs the launch once.
inline void RunOnce(const cuda::Launch& launch) {
  cuda::Emulator emulator;
  const Status status = cuda::RunEmulated(launch, emulator);
  ASSERT_TRUE(status.ok()) << status.message();
}

}  // namespace skein::testing
