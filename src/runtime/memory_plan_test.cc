#include "runtime/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kv/block_pool.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int kThreads = 2;

TEST(MemoryPlan, TheLongestInputIsTheLastThatFits) {
  const ModelConfig config = testing::Qwen3Shape();
  for (const PrefillMode& mode : PrefillModes()) {
    SCOPED_TRACE(mode.name);
    EXPECT_EQ(FindPrefillMode(mode.name), &mode);
    for (const int64_t memory : {kGiB / 8, kGiB / 4, 2 * kGiB}) {
      const int32_t n = MaxInputTokens(config, DType::kBf16, mode, memory, kThreads);
      ASSERT_GT(n, 0);
      EXPECT_LE(RequestBytes(config, DType::kBf16, mode, n, kThreads), memory);
      EXPECT_GT(RequestBytes(config, DType::kBf16, mode, n + 1, kThreads), memory);
    }
    EXPECT_EQ(MaxInputTokens(config, DType::kBf16, mode, 1000, kThreads), 0);
  }
  EXPECT_EQ(FindPrefillMode("whole"), nullptr);
}

// If the chunks' outputs are collected, this costs the memory that hybrid prefilling saves. Only
// with outputs in place does each part of hybrid prefilling allow longer inputs. Together, the
// parts allow inputs more than eight times as long as the paged cache does.
TEST(MemoryPlan, EachPartOfHybridPrefillingAllowsLongerInputs) {
  const auto longest = [](const char* name) {
    return MaxInputTokens(testing::Qwen3Shape(), DType::kBf16, *FindPrefillMode(name), 2 * kGiB,
                          kThreads);
  };
  EXPECT_LT(longest("paged"), longest("chunked"));
  EXPECT_LT(longest("paged"), longest("drop-kv"));
  EXPECT_LT(longest("drop-kv"), longest("hybrid-preallocated"));
  EXPECT_LT(longest("hybrid-collected"), longest("hybrid-preallocated"));
  EXPECT_LT(longest("hybrid-preallocated"), longest("hybrid"));
  EXPECT_GT(longest("hybrid"), 8 * longest("paged"));
  EXPECT_GT(longest("hybrid-prefix"), 8 * longest("paged"));
}

TEST(MemoryPlan, WhatARequestDoesNotNeedIsTheCaches) {
  const ModelConfig config = testing::Qwen3Shape();
  const int64_t block_bytes = config.KvBytesPerToken(DType::kBf16) * kBlockTokens;
  const auto limits = [](int32_t n) {
    const StepBounds bounds = StepBoundsOf(Retention::kPrefix, n, 512);
    return ForwardLimits{.max_tokens = bounds.max_tokens,
                         .chunk_tokens = kHybridChunkTokens,
                         .max_own_blocks = bounds.max_own_blocks};
  };
  const auto split = [&](int64_t memory, int32_t max_model_len, const StepStates& states = {}) {
    return SplitMemory(
        {.memory_bytes = memory,
         .fixed_bytes = 1 << 20,
         .block_bytes = KvBlockBytes(config, DType::kBf16),
         .retention = Retention::kPrefix,
         .step_bytes =
             [&](int32_t n) { return TemporaryBytes(config, DType::kBf16, limits(n), n, states); }},
        max_model_len, config.max_position);
  };
  auto given = split(kGiB, 20000);
  ASSERT_TRUE(given.ok()) << given.status().message();
  EXPECT_EQ(given->max_model_len, 20000);
  EXPECT_EQ(given->temporary_bytes,
            (1 << 20) + TemporaryBytes(config, DType::kBf16, limits(20000), 20000));
  EXPECT_LE(given->temporary_bytes + given->num_kv_blocks * block_bytes, kGiB);
  EXPECT_GT(given->temporary_bytes + (given->num_kv_blocks + 1) * block_bytes, kGiB);
  // Memory is also set aside for the activations of suspended steps.
  auto three = split(kGiB, 20000, {.num_steps = 3});
  ASSERT_TRUE(three.ok()) << three.status().message();
  EXPECT_GT(three->temporary_bytes, 2 * given->temporary_bytes);
  EXPECT_LE(three->temporary_bytes + three->num_kv_blocks * block_bytes, kGiB);
  // A step of decodes beside them needs less memory than a further step of any kind.
  auto decodes = split(kGiB, 20000, {.num_steps = 3, .num_decodes = 16});
  ASSERT_TRUE(decodes.ok()) << decodes.status().message();
  const int64_t more = decodes->temporary_bytes - three->temporary_bytes;
  EXPECT_GT(more, int64_t{16} * config.vocab_size * 4);
  EXPECT_LT(more, given->temporary_bytes / 2);
  // The length is that of the model. If that is too long, it is the length that fits half of the
  // memory.
  EXPECT_EQ(split(4 * kGiB, 0)->max_model_len, config.max_position);
  auto chosen = split(kGiB / 2, 0);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_LT(chosen->max_model_len, config.max_position);
  EXPECT_GT(chosen->num_kv_blocks * block_bytes, kGiB / 5);
  const Status too_long = split(kGiB / 4, 40000).status();
  EXPECT_EQ(too_long.param(), "max_model_len");
  const std::string longest = std::to_string(MaxInputTokens(kGiB / 4, [&](int32_t n) {
    return (1 << 20) + TemporaryBytes(config, DType::kBf16, limits(n), n) + block_bytes;
  }));
  EXPECT_THAT(too_long.message(), ::testing::HasSubstr("at most " + longest + " tokens fit"));
  EXPECT_EQ(split(1 << 20, 0).status().param(), "memory");
}

TEST(MemoryPlan, WhatIsDrawnFromNeedsCandidates) {
  const ModelConfig config = testing::Qwen3Shape();
  EXPECT_EQ(SamplerBytes(config, kThreads, false), kThreads * 12 * config.vocab_size);
  EXPECT_EQ(SamplerBytes(config, kThreads, true), kThreads * 20 * config.vocab_size);
}

// The number of bytes from the beginning of the stack to the lowest byte that a thread writes in
// `fn`.
int64_t StackDepth(const std::function<void()>& fn) {
  constexpr size_t kBytes = size_t{8} << 20;
  constexpr std::byte kUnused{0xa5};
  AlignedBuffer stack(kBytes);
  std::fill_n(stack.data(), kBytes, kUnused);
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack.data(), kBytes), 0);
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&fn)), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  const std::byte* const end = stack.data() + kBytes;
  return end - std::find_if(static_cast<const std::byte*>(stack.data()), end,
                            [](std::byte b) { return b != kUnused; });
}

// The least number of bytes that a thread writes: the sums of q, k and v; on AMX also the rows and
// sums of a product (kernels/cpu/amx.cc). Logits of bf16 models need these rows and sums even if q,
// k and v are in tiles. In int8 products, they are below the sums of q, k and v.
int64_t LeastDepth(Isa isa, DType dtype, bool int8) {
  constexpr int64_t kQkvSums = int64_t{192} << 10, kProduct = int64_t{1280} << 10;
  if (isa != Isa::kAmx) return kQkvSums;
  if (int8) return kQkvSums + kProduct;
  return dtype == DType::kBf16 ? kProduct : kQkvSums;
}

TEST(MemoryPlan, AThreadStaysWithinTheStackThatIsSetAside) {
  constexpr int32_t kTokens = 200;
  const std::vector<int32_t> tokens(kTokens, 1), blocks = testing::Blocks(0, kTokens);
  for (const char* quantization : {"none", "int8", "int4"}) {
    for (const char* dtype : {"f32", "bf16"}) {
      const testing::LoadedModel model(
          SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
          testing::LoadOptions{.dtype = dtype, .quantization = quantization});
      ForwardPass pass(model.context(), {.max_tokens = kTokens});
      const int64_t depth = StackDepth([&] {
        pass.batch().AddRow(tokens, 0, blocks, true);
        testing::RunPass(&pass, model.vocab());
      });
      const ForwardContext context = model.context();
      const bool int8 = context.weights->matrix_dtype == DType::kInt8;
      EXPECT_GT(depth, LeastDepth(context.kernels->isa(), context.weights->dtype, int8))
          << dtype << " " << quantization;
      EXPECT_LE(depth, kThreadStackBytes) << dtype << " " << quantization;
    }
  }
}

}  // namespace
}  // namespace skein
