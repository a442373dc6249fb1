#include "cuda/emulator/emulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "cuda/kernels/dialect.h"
#include "cuda/kernels/products.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::RandomValues;
using testing::TurnOrders;

TEST(Emulator, ThreadsOfAllBlocksRunOnce) {
  std::vector<int> seen(2 * 3 * 4 * 64);
  Emulator emulator;
  ASSERT_TRUE(emulator
                  .Run({{2, 3, 4}, 64, 0},
                       [&] {
                         const Dim3 block = blockIdx;
                         ++seen[((block.z * 3 + block.y) * 2 + block.x) * 64 + threadIdx.x];
                       })
                  .ok());
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

// Each thread reads the value that its neighbour wrote. Without a barrier the result may be wrong.
std::vector<int> Rotate(TurnOrder order, bool with_barrier) {
  struct Shared {
    int values[64];
  };
  std::vector<int> out(64);
  Emulator emulator(order);
  EXPECT_TRUE(emulator
                  .Run({{}, 64, sizeof(Shared)},
                       [&] {
                         Shared& shared = SharedMemory<Shared>();
                         const int i = static_cast<int>(threadIdx.x);
                         shared.values[i] = i;
                         if (with_barrier) __syncthreads();
                         out[i] = shared.values[(i + 1) % 64];
                       })
                  .ok());
  return out;
}

TEST(Emulator, OrdersOfTurnsFindAMissingBarrier) {
  const std::vector<int> expected = Rotate({}, true);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(expected[i], (i + 1) % 64);
  int num_others = 0;
  for (const TurnOrder& order : TurnOrders()) {
    EXPECT_EQ(Rotate(order, true), expected);
    num_others += Rotate(order, false) != expected;
  }
  EXPECT_EQ(num_others, static_cast<int>(TurnOrders().size()));
  // One order of threads does not reveal the error: in it every thread but the last reads before
  // the write.
  EXPECT_NE(Rotate({}, false), Rotate({TurnOrder::Kind::kReverse}, false));
}

// Two copies are started, and the first one is used. `pending` is the number of copies that the
// wait leaves unfinished.
template <int kPending>
float FirstOfTwoCopies(TurnOrder order) {
  struct Shared {
    alignas(16) float values[2][4];
  };
  alignas(16) static const float kSource[4] = {1, 2, 3, 4};
  float result = 0;
  Emulator emulator(order);
  EXPECT_TRUE(emulator
                  .Run({{}, 32, sizeof(Shared)},
                       [&] {
                         Shared& shared = SharedMemory<Shared>();
                         if (threadIdx.x == 0) {
                           CopyAsync16(shared.values[0], kSource, true);
                           CommitCopies();
                           CopyAsync16(shared.values[1], kSource, false);
                           CommitCopies();
                           WaitForCopies<kPending>();
                           result = shared.values[0][1];
                         }
                       })
                  .ok());
  return result;
}

TEST(Emulator, LateCopiesFindAMissingWait) {
  EXPECT_EQ(FirstOfTwoCopies<1>({}), 2.0f);
  EXPECT_EQ(FirstOfTwoCopies<0>({}), 2.0f);
  EXPECT_TRUE(std::isnan(FirstOfTwoCopies<2>({})));
  EXPECT_EQ(FirstOfTwoCopies<2>({.early_copies = true}), 2.0f);
}

// A thread passes 20 numbers to another one through a ring of two places.
std::vector<int> PassThroughRing(TurnOrder order, bool waits_until_free) {
  struct Shared {
    int values[2];
    uint64_t filled[2], free[2];
  };
  constexpr int kCount = 20;
  std::vector<int> received;
  Emulator emulator(order);
  const bool ended = emulator
                         .Run({{}, 64, sizeof(Shared)},
                              [&] {
                                Shared& shared = SharedMemory<Shared>();
                                if (threadIdx.x == 0) {
                                  for (int i = 0; i < 2; ++i) {
                                    InitBarrier(&shared.filled[i], 1);
                                    InitBarrier(&shared.free[i], 1);
                                  }
                                }
                                __syncthreads();
                                for (uint32_t i = 0; i < kCount; ++i) {
                                  const uint32_t place = i % 2, parity = i / 2 % 2;
                                  if (threadIdx.x == 0) {
                                    if (waits_until_free)
                                      WaitForPhase(&shared.free[place], parity ^ 1);
                                    shared.values[place] = static_cast<int>(i);
                                    Arrive(&shared.filled[place]);
                                  } else if (threadIdx.x == 40) {
                                    WaitForPhase(&shared.filled[place], parity);
                                    received.push_back(shared.values[place]);
                                    Arrive(&shared.free[place]);
                                  }
                                }
                              })
                         .ok();
  // Without the wait a phase can pass unseen, and the receiver waits forever.
  EXPECT_EQ(ended, waits_until_free);
  return received;
}

TEST(Emulator, PhasesHandAPlaceBackAndForth) {
  std::vector<int> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  for (const TurnOrder& order : TurnOrders()) {
    EXPECT_EQ(PassThroughRing(order, true), expected);
  }
  EXPECT_NE(PassThroughRing({}, false), expected);
}

// Element (x, y, z) is 100 z + 10 y + x, of a matrix [2, 3, 40].
TEST(Emulator, BoxesAreExchangedAndEndInZeros) {
  constexpr int kRowsOfBox = 8;
  struct Shared {
    alignas(1024) uint32_t rows[kRowsOfBox][TensorMap::kRowWords];
    uint64_t filled;
  };
  std::vector<uint32_t> matrix(2 * 3 * 40);
  for (uint32_t i = 0; i < matrix.size(); ++i) matrix[i] = i / 120 * 100 + i / 40 % 3 * 10 + i % 40;
  const TensorMap map = {
      .base = matrix.data(), .sizes = {40, 3, 2}, .strides = {160, 480}, .rows = 4, .matrices = 2};
  for (const bool early : {false, true}) {
    std::vector<uint32_t> box;
    bool waited = false;
    Emulator emulator({.early_copies = early});
    ASSERT_TRUE(emulator
                    .Run({{}, 32, sizeof(Shared)},
                         [&] {
                           if (threadIdx.x != 0) return;
                           Shared& shared = SharedMemory<Shared>();
                           InitBarrier(&shared.filled, 1);
                           ShowBarriersToCopies();
                           ArriveWithBytes(&shared.filled, sizeof(shared.rows));
                           CopyBox(shared.rows, map, 16, 1, 0, &shared.filled);
                           waited = shared.rows[0][0] != 26;
                           WaitForPhase(&shared.filled, 0);
                           for (uint32_t row = 0; row < kRowsOfBox; ++row) {
                             for (uint32_t x = 0; x < TensorMap::kRowWords; ++x) {
                               box.push_back(shared.rows[row][((x / 4) ^ (row % 8)) * 4 + x % 4]);
                             }
                           }
                         })
                    .ok());
    EXPECT_EQ(waited, !early);
    for (uint32_t i = 0; i < box.size(); ++i) {
      const uint32_t x = 16 + i % 32, y = 1 + i / 32 % 4, z = i / 128;
      EXPECT_EQ(box[i], x < 40 && y < 3 ? 100 * z + 10 * y + x : 0) << i;
    }
  }
}

TEST(Emulator, ThreadsThatNeverMeetAreAnError) {
  Emulator emulator;
  const auto run = [&](const std::function<void()>& thread) {
    const Status status = emulator.Run({{2}, 64, 0}, thread);
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    return status.message();
  };
  EXPECT_EQ(run([] {
              if (threadIdx.x != 40) __syncthreads();
            }),
            "block (0, 0, 0): thread 0 waits forever at a barrier of its block");
  EXPECT_EQ(run([] {
              if (blockIdx.x == 1 && threadIdx.x == 33) __shfl_sync(kAllLanes, 1, 0);
            }),
            "block (1, 0, 0): thread 33 waits forever in __shfl_sync");
  EXPECT_EQ(run([] {
              if (threadIdx.x % 32 == 31) {
                __shfl_xor_sync(kAllLanes, 1, 1);
              } else {
                __shfl_sync(kAllLanes, 1, 0);
              }
            }),
            "block (0, 0, 0): lanes of a warp meet in __shfl_sync and __shfl_xor_sync");
  EXPECT_EQ(emulator
                .Run({{}, 32, 8},
                     [] {
                       if (threadIdx.x != 5) return;
                       InitBarrier(&SharedMemory<uint64_t>(), 2);
                       Arrive(&SharedMemory<uint64_t>());
                       WaitForPhase(&SharedMemory<uint64_t>(), 0);
                     })
                .message(),
            "block (0, 0, 0): thread 5 waits forever for a phase of a barrier in shared memory");
  EXPECT_EQ(emulator
                .Run({{}, 32, 1024 + 8},
                     [] {
                       if (threadIdx.x != 0) return;
                       uint64_t* const barrier = &SharedMemory<uint64_t>() + 128;
                       InitBarrier(barrier, 1);
                       CopyBox(&SharedMemory<uint64_t>(), TensorMap{}, 0, 0, 0, barrier);
                     })
                .message(),
            "block (0, 0, 0): a box has a barrier that was not shown to copies");
  // The emulator can be used again.
  EXPECT_TRUE(emulator.Run({{2}, 64, 0}, [] { __syncthreads(); }).ok());
}

TEST(Emulator, EveryThreadOfAKernelWaitsOnceForTheKernelBefore) {
  Emulator emulator;
  const auto run = [&](const std::function<void()>& thread) {
    emulator.BeginKernel({{2}, 64, 0}, thread);
    return emulator.FinishKernel();
  };
  EXPECT_TRUE(run([] { WaitForPreviousKernel(); }).ok());
  EXPECT_EQ(run([] {
              if (blockIdx.x == 1 && threadIdx.x == 40) return;
              LetNextKernelStart();
              WaitForPreviousKernel();
            }).message(),
            "block (1, 0, 0): thread 40 has waited 0 times for the kernel before, not once");
  EXPECT_EQ(run([] {
              WaitForPreviousKernel();
              if (threadIdx.x == 2) WaitForPreviousKernel();
            }).message(),
            "block (0, 0, 0): thread 2 has waited 2 times for the kernel before, not once");
  EXPECT_EQ(run([] {
              if (threadIdx.x < 5) __syncthreads();
              WaitForPreviousKernel();
            }).message(),
            "block (0, 0, 0): thread 0 waits forever at a barrier of its block");
  EXPECT_TRUE(emulator.Run({{2}, 64, 0}, [] {}).ok());
}

// A block begins before the kernel ahead of it has run.
TEST(Emulator, AReadBeforeTheWaitSeesOldValues) {
  for (const TurnOrder& order : TurnOrders()) {
    Emulator first(order), second(order);
    float memory = 1;
    std::vector<float> before(128), after(128);
    second.BeginKernel({{2}, 64, 0}, [&] {
      const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
      before[i] = memory;
      __syncthreads();
      WaitForPreviousKernel();
      after[i] = memory;
    });
    first.BeginKernel({{}, 32, 0}, [&] {
      WaitForPreviousKernel();
      memory = 2;
    });
    ASSERT_TRUE(first.FinishKernel().ok());
    ASSERT_TRUE(second.FinishKernel().ok());
    EXPECT_EQ(after, std::vector<float>(128, 2));
    EXPECT_EQ(std::ranges::count(before, 1), 64);
  }
}

TEST(Emulator, AKernelThatHasBegunCanBeDropped) {
  Emulator emulator;
  int num_runs = 0;
  for (int i = 0; i < 2; ++i) {
    emulator.BeginKernel({{2}, 64, 0}, [&] {
      WaitForPreviousKernel();
      ++num_runs;
    });
    if (i == 0) emulator.DropKernel();
  }
  EXPECT_TRUE(emulator.FinishKernel().ok());
  EXPECT_EQ(num_runs, 128);
}

TEST(Emulator, SharedMemoryBeginsAsNaN) {
  struct Shared {
    float value;
  };
  Emulator emulator;
  ASSERT_TRUE(emulator
                  .Run({{3}, 32, sizeof(Shared)},
                       [] {
                         Shared& shared = SharedMemory<Shared>();
                         EXPECT_TRUE(std::isnan(shared.value));
                         __syncthreads();
                         shared.value = 1;
                       })
                  .ok());
}

// One warp multiplies a [16, words] by b [8, words]. Operands and sums have the layout that defines
// the fragments.
template <typename T>
std::vector<typename Product<T>::Sum> Multiply(const std::vector<uint32_t>& a,
                                               const std::vector<uint32_t>& b, TurnOrder order) {
  std::vector<typename Product<T>::Sum> out(16 * 8);
  const int words = static_cast<int>(a.size()) / 16;
  Emulator emulator(order);
  EXPECT_TRUE(emulator
                  .Run({{}, 32, 0},
                       [&] {
                         const Lane lane;
                         typename Product<T>::Sum c[4] = {};
                         for (int word = lane.quad; word < words; word += kMmaWords) {
                           const auto at = [&](const std::vector<uint32_t>& matrix, int row,
                                               int column) { return matrix[row * words + column]; };
                           Product<T>::Add(
                               c,
                               {at(a, lane.group, word), at(a, lane.group + 8, word),
                                at(a, lane.group, word + 4), at(a, lane.group + 8, word + 4)},
                               {at(b, lane.group, word), at(b, lane.group, word + 4)});
                         }
                         for (int i = 0; i < 4; ++i) {
                           out[(lane.group + i / 2 * 8) * 8 + lane.quad * 2 + i % 2] = c[i];
                         }
                       })
                  .ok());
  return out;
}

TEST(Emulator, ProductsAreChainsInTheOrderOfK) {
  RandomValues random;
  constexpr int kWords = 24;
  const std::vector<float> a = random.Floats(16 * kWords, DType::kF32, testing::Range::kPlain);
  const std::vector<float> b = random.Floats(8 * kWords, DType::kF32, testing::Range::kPlain);
  const auto words_of = [](const std::vector<float>& values) {
    std::vector<uint32_t> words;
    for (const float x : values) words.push_back(std::bit_cast<uint32_t>(x));
    return words;
  };
  const auto f32 = Multiply<float>(words_of(a), words_of(b), {});
  const auto bf16 = Multiply<Bf16>(words_of(a), words_of(b), {});
  const auto int8 = Multiply<int8_t>(words_of(a), words_of(b), {});
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float f32_sum = 0, bf16_sum = 0;
      int32_t int8_sum = 0;
      for (int i = 0; i < kWords; ++i) {
        const float x = a[row * kWords + i], y = b[column * kWords + i];
        f32_sum = std::fma(x, y, f32_sum);
        const auto x_bits = std::bit_cast<uint32_t>(x), y_bits = std::bit_cast<uint32_t>(y);
        for (const int shift : {0, 16}) {
          bf16_sum = std::fma(ToFloat(Bf16{static_cast<uint16_t>(x_bits >> shift)}),
                              ToFloat(Bf16{static_cast<uint16_t>(y_bits >> shift)}), bf16_sum);
        }
        for (int shift = 0; shift < 32; shift += 8) {
          int8_sum += int8_t(x_bits >> shift) * int8_t(y_bits >> shift);
        }
      }
      const int at = row * 8 + column;
      EXPECT_TRUE(testing::SameBits(f32[at], f32_sum)) << row << " " << column;
      EXPECT_TRUE(testing::SameBits(bf16[at], bf16_sum)) << row << " " << column;
      EXPECT_EQ(int8[at], int8_sum) << row << " " << column;
    }
  }
  for (const TurnOrder& order : TurnOrders()) {
    EXPECT_EQ(Multiply<int8_t>(words_of(a), words_of(b), order), int8);
    EXPECT_EQ(Multiply<float>(words_of(a), words_of(b), order), f32);
  }
}

}  // namespace
}  // namespace skein::cuda
