// Adapters on the emulated device, beside the processor.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/weights/lora_weights.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Both;
using testing::ExpectSame;
using testing::LoadedModel;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;

PackedWeight RandomMatrix(int32_t n, int32_t k, DType dtype, Random& random) {
  std::vector<float> values(size_t(n) * k);
  for (float& value : values) value = static_cast<float>(random.Integer(-100, 100)) / 500.0f;
  PackedWeight matrix(n, k, dtype);
  matrix.PackRows(0, n, values.data(), DType::kF32);
  return matrix;
}

// An adapter that changes the products of `layers` for which `changes` holds.
template <class Changes>
LoraWeights RandomAdapter(const LoadedModel& model, int32_t rank, Random& random,
                          const Changes& changes) {
  LoraWeights adapter;
  for (const LayerWeights& layer : model.weights().layers) {
    const bool linear = layer.linear.in.n() > 0;
    const PackedWeight* const products[] = {linear ? &layer.linear.in : &layer.qkv, &layer.o,
                                            &layer.gate_up, &layer.down, &layer.attn_gate};
    LoraLayer& of = adapter.layers.emplace_back();
    for (size_t i = 0; i < kNumLoraProducts; ++i) {
      const PackedWeight& product = *products[i];
      if (product.n() == 0 || !changes(static_cast<LoraProduct>(i))) continue;
      of.pairs[i].a = RandomMatrix(rank, product.k(), model.weights().dtype, random);
      of.pairs[i].b = RandomMatrix(product.n(), rank, DType::kF32, random);
    }
  }
  return adapter;
}

// Ranks below and above a panel, and above two.
std::vector<LoraWeights> RandomAdapters(const LoadedModel& model, Random& random) {
  std::vector<LoraWeights> adapters;
  adapters.push_back(RandomAdapter(model, 5, random, [](LoraProduct) { return true; }));
  adapters.push_back(RandomAdapter(model, 40, random, [](LoraProduct product) {
    return product == LoraProduct::kQkv || product == LoraProduct::kDown;
  }));
  adapters.push_back(RandomAdapter(
      model, 16, random, [](LoraProduct product) { return product == LoraProduct::kGateUp; }));
  return adapters;
}

struct Rows {
  Rows(Random& random, int32_t vocab) {
    for (const int32_t length : {20, 7, 35, 1, 30}) {
      sequences.emplace_back(random, vocab, length, 10 * std::ssize(sequences));
    }
  }

  // The first and the third row have the first adapter, the second has none.
  OneShotPlan Plan(const Executor& executor) {
    constexpr int32_t kAdapters[] = {1, 0, 1, 2, 3};
    OneShotPlan plan;
    for (size_t i = 0; i < sequences.size(); ++i) {
      plan.rows.push_back(sequences[i].Whole());
      plan.rows.back().adapter_id = kAdapters[i];
    }
    testing::GiveStates(executor, &plan.rows);
    return plan;
  }

  std::vector<Sequence> sequences;
};

struct AdaptedCase {
  const char* name;
  const char* quantization = "auto";
  int32_t chunk_tokens = 0;
};

TEST(CudaLora, AdaptersHaveTheProcessorsBits) {
  Random random;
  for (const AdaptedCase& adapted :
       {AdaptedCase{"llama-default"}, AdaptedCase{"qwen3-bf16"}, AdaptedCase{"qwen3-bf16", "int8"},
        AdaptedCase{"qwen3", "int4"}, AdaptedCase{"gemma3-bf16"}, AdaptedCase{"qwen3.5-bf16"},
        AdaptedCase{"llama-biases"}, AdaptedCase{"qwen3-bf16", "auto", 13},
        AdaptedCase{"qwen3", "int4", 32}, AdaptedCase{"qwen3.5-bf16", "auto", 13}}) {
    SCOPED_TRACE(std::string(adapted.name) + " " + adapted.quantization + ", chunks of " +
                 std::to_string(adapted.chunk_tokens));
    const LoadedModel model(ModelDir(adapted.name));
    const std::vector<LoraWeights> adapters = RandomAdapters(model, random);
    Both both(ModelDir(adapted.name), adapted.quantization, {}, {}, Pooling::kLast, &adapters, {},
              false, adapted.chunk_tokens);
    Rows rows(random, model.vocab());
    OneShotPlan plan = rows.Plan(*both.cpu);
    const StepResults expected = RunPlan(*both.cpu, plan);
    ExpectSame(RunPlan(both.cuda.executor(), plan), expected);
    both.cuda.executor().set_slice_us(0);
    ExpectSame(RunPlan(both.cuda.executor(), plan), expected);
    // A decode with an adapter runs without a graph, and one without an adapter with a graph.
    Sequence& last = rows.sequences.back();
    for (const int32_t adapter : {3, 0}) {
      DecodePlan decode{{}, {last.Row(last.size() - 1, last.size(), true)}};
      decode.rows[0].adapter_id = adapter;
      testing::GiveStates(*both.cpu, &decode.rows);
      ExpectSame(RunPlan(both.cuda.executor(), decode), RunPlan(*both.cpu, decode));
    }
    EXPECT_EQ(both.device.fake().num_graph_runs(), 1);
    // An adapter changes its own rows alone.
    for (PlanRow& row : plan.rows) row.adapter_id = 0;
    const StepResults plain = RunPlan(both.cuda.executor(), plan);
    EXPECT_EQ(plain.draws[1].token.chosen.logprob, expected.draws[1].token.chosen.logprob);
    for (const int32_t i : {0, 2, 3, 4}) {
      EXPECT_NE(plain.draws[i].token.chosen.logprob, expected.draws[i].token.chosen.logprob) << i;
    }
  }
}

}  // namespace
}  // namespace skein::cuda
