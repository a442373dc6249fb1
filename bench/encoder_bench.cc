// Sentences per second of an encoder's forward pass, without tokenizer, engine or server.
//
//   encoder_bench MODEL_DIR [--benchmark_filter=bf16/threads:2.*]
//
// A batch holds 32 sentences of equal length, pooled by their mean; items are sentences.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "model/forward/pass.h"

namespace skein {
namespace {

constexpr int32_t kSentences = 32;

void EncodeBench(benchmark::State& state, const std::string& dir, ComputeChoice choice) {
  const auto threads = static_cast<int>(state.range(0));
  const auto length = static_cast<int32_t>(state.range(1));
  const ModelConfig config = LoadModelConfig(dir).value();
  const DType dtype = ChooseComputeType(choice, config.file_dtype);
  ThreadTeam team(threads);
  const auto kernels = MakeKernels(SelectIsa().value()).value();
  const ModelWeights weights = LoadWeights(dir, config, dtype, team, {}).value();
  const int32_t blocks = CeilDiv(length, kKvBlockTokens);
  ForwardContext context = {
      &weights,
      kernels.get(),
      nullptr,
      {dtype, config.num_layers, kSentences * blocks, config.num_kv_heads, config.head_dim},
      nullptr,
      &team};
  AlignedBuffer kv(context.kv_layout.total_bytes());
  context.kv = kv.data();
  context.pooling = Pooling::kMean;
  ForwardPass pass(context, {.max_tokens = kSentences * length});
  std::vector<int32_t> tokens(length), tables(size_t(kSentences) * blocks);
  std::iota(tables.begin(), tables.end(), 0);
  for (int32_t i = 0; i < length; ++i) tokens[i] = (1000 + 37 * i) % config.vocab_size;
  for (auto _ : state) {
    ForwardBatch& batch = pass.batch();
    batch.Clear();
    for (int32_t i = 0; i < kSentences; ++i) {
      batch.AddRow(tokens, 0, std::span(tables).subspan(size_t(i) * blocks, blocks), false);
      batch.embedded_rows.push_back(i);
    }
    pass.Begin();
    while (pass.Run(nullptr) != ForwardStatus::kDone) {
    }
  }
  state.SetItemsProcessed(state.iterations() * kSentences);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: encoder_bench MODEL_DIR [--benchmark_...]\n");
    return 1;
  }
  auto config = skein::LoadModelConfig(argv[1]);
  if (!config.ok() || !config->is_encoder()) {
    std::fprintf(stderr, "%s: %s\n", argv[1],
                 config.ok() ? "not an encoder" : config.status().message().c_str());
    return 1;
  }
  for (const auto dtype : {skein::ComputeChoice::kF32, skein::ComputeChoice::kBf16}) {
    benchmark::RegisterBenchmark(
        dtype == skein::ComputeChoice::kF32 ? "Encode/f32" : "Encode/bf16",
        [=](benchmark::State& state) { skein::EncodeBench(state, argv[1], dtype); })
        ->ArgNames({"threads", "tokens"})
        ->ArgsProduct({{1, 2}, {16, 64, 256}})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
