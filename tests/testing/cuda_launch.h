#pragma once

// Launches of kernels on the emulator, in many orders of turns, and rows of grouped products.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cuda/kernels/args.h"
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

// Slots by expert, ascending. Slot i goes through experts[i].
inline std::vector<std::vector<int32_t>> ListSlots(const std::vector<int32_t>& experts,
                                                   int32_t num_experts) {
  std::vector<std::vector<int32_t>> lists(num_experts);
  for (size_t slot = 0; slot < experts.size(); ++slot) {
    lists[experts[slot]].push_back(static_cast<int32_t>(slot));
  }
  return lists;
}

// Slots of tokens at random experts; one expert has none.
class RandomGroups {
 public:
  RandomGroups(RandomValues& random, int32_t num_experts, int32_t num_tokens, int32_t per_token)
      : num_tokens_(num_tokens), per_token_(per_token), counts_(num_experts) {
    const int32_t without = random.Integer(0, num_experts - 1);
    while (num_slots() < num_tokens * per_token) {
      const int32_t expert = random.Integer(0, num_experts - 1);
      if (expert != without) experts_.push_back(expert);
    }
    const auto lists = ListSlots(experts_, num_experts);
    slots_.assign(size_t(num_experts) * num_slots(), -1);
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      counts_[expert] = static_cast<int32_t>(lists[expert].size());
      std::ranges::copy(lists[expert], slots_.begin() + size_t(expert) * num_slots());
    }
  }

  int32_t num_slots() const { return static_cast<int32_t>(experts_.size()); }
  int32_t expert(int32_t slot) const { return experts_[slot]; }
  // The row of a that a slot reads: a row for each token, or for each slot.
  int32_t row(int32_t slot, bool of_tokens) const { return of_tokens ? slot / per_token_ : slot; }
  int32_t num_rows(bool of_tokens) const { return of_tokens ? num_tokens_ : num_slots(); }
  // All groups, with weights of so many panels each.
  cuda::GemmGroups Groups(int32_t panels, bool of_tokens) const {
    return {.counts = counts_.data(),
            .slots = slots_.data(),
            .capacity = num_slots(),
            .slots_per_row = of_tokens ? per_token_ : 1,
            .num_groups = static_cast<int32_t>(counts_.size()),
            .panels = panels};
  }

 private:
  int32_t num_tokens_, per_token_;
  std::vector<int32_t> experts_;  // by slot
  std::vector<int32_t> counts_, slots_;
};

// The compute type of a product, and the type of its matrix.
struct ProductTypes {
  DType compute, matrix;
};
inline constexpr ProductTypes kProductTypes[] = {{DType::kF32, DType::kF32},
                                                 {DType::kBf16, DType::kBf16},
                                                 {DType::kF32, DType::kInt8},
                                                 {DType::kBf16, DType::kInt8}};

}  // namespace skein::testing
