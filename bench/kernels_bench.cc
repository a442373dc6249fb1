// Speed of the numeric kernels on one thread, for every instruction set of this machine.
//
//   kernels_bench [--benchmark_filter=Gemm/avx512.*]
//
// Gemm runs the four products of a layer of Qwen3-0.6B (hidden 1024, q 2048 + k 1024 + v 1024,
// intermediate 3072); the weights change from call to call, so that one row streams them from
// memory as a decode step does. GFLOP/s counts 2 m n k; GB/s the weights read.

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "base/fp_mode.h"
#include "kernels/kernels.h"

namespace skein {
namespace {

struct Shape {
  const char* name;
  int32_t n, k;
};
constexpr Shape kShapes[] = {
    {"qkv", 4096, 1024}, {"o", 1024, 2048}, {"gate_up", 6144, 1024}, {"down", 1024, 3072}};

constexpr size_t kWeightBytes = size_t{256} << 20;  // more than any cache in use

std::vector<Bf16> RandomBf16(size_t count) {
  std::mt19937 random(1);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = ToBf16(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
  return values;
}

void GemmBench(benchmark::State& state, Isa isa, DType dtype, Shape shape) {
  const ScopedFpMode fp_mode;
  const auto kernels = MakeKernels(isa);
  const auto m = static_cast<int32_t>(state.range(0));
  const std::vector<Bf16> w = RandomBf16(size_t(shape.n) * shape.k);
  std::vector<PackedWeight> weights;
  do {
    weights.emplace_back(shape.n, shape.k, dtype);
    weights.back().PackRows(0, shape.n, w.data(), DType::kBf16);
  } while (m == 1 && weights.size() * weights[0].bytes() < kWeightBytes);
  const std::vector<Bf16> a_bf16 = RandomBf16(size_t(m) * shape.k);
  std::vector<float> a_f32;
  for (Bf16 value : a_bf16) a_f32.push_back(ToFloat(value));
  std::vector<float> out(size_t(m) * shape.n);
  size_t next = 0;
  for (auto _ : state) {
    const PackedWeight& weight = weights[next++ % weights.size()];
    kernels.value()->Gemm({
        .a = dtype == DType::kBf16 ? static_cast<const void*>(a_bf16.data()) : a_f32.data(),
        .lda = shape.k,
        .m = m,
        .w = &weight,
        .n_begin = 0,
        .n_end = shape.n,
        .out = out.data(),
        .ldo = shape.n,
    });
    benchmark::DoNotOptimize(out.data());
  }
  const double calls = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(calls * 2e-9 * m * shape.n * shape.k, benchmark::Counter::kIsRate);
  if (m == 1) {
    state.counters["GB/s"] = benchmark::Counter(
        calls * 1e-9 * static_cast<double>(weights[0].bytes()), benchmark::Counter::kIsRate);
  }
}

// One tile: two query heads of a decode step (16: a prefill's 8 positions) over num_keys.
void AttentionBench(benchmark::State& state, Isa isa, DType dtype) {
  constexpr int32_t kHeadDim = 128;
  const ScopedFpMode fp_mode;
  const auto kernels = MakeKernels(isa);
  const auto num_rows = static_cast<int32_t>(state.range(0));
  const auto num_keys = static_cast<int32_t>(state.range(1));
  const int32_t num_blocks = (num_keys + kKvBlockTokens - 1) / kKvBlockTokens;
  const KvLayout layout = {dtype, 1, num_blocks, 1, kHeadDim};
  AlignedBuffer kv(layout.total_bytes());
  const std::vector<Bf16> values = RandomBf16(size_t(num_keys) * kHeadDim);
  std::vector<float> row(kHeadDim);
  for (int32_t key = 0; key < num_keys; ++key) {
    const Bf16* bf16 = &values[key * kHeadDim];
    for (int32_t d = 0; d < kHeadDim; ++d) row[d] = ToFloat(bf16[d]);
    const void* typed = dtype == DType::kF32 ? static_cast<const void*>(row.data()) : bf16;
    std::byte* base = kv.data() + layout.Offset(0, key / kKvBlockTokens, 0);
    layout.StoreK(base, key % kKvBlockTokens, typed);
    layout.StoreV(base, key % kKvBlockTokens, typed);
  }
  std::vector<int32_t> block_table(num_blocks);
  for (int32_t i = 0; i < num_blocks; ++i) block_table[i] = i;
  const std::vector<float> q(size_t(num_rows) * kHeadDim, 0.25f);
  std::vector<float> out(q.size());
  std::vector<AttentionRow> rows;
  for (int32_t r = 0; r < num_rows; ++r) {
    rows.push_back({q.data() + r * kHeadDim, out.data() + r * kHeadDim, num_keys, num_blocks,
                    block_table.data()});
  }
  for (auto _ : state) {
    kernels.value()->Attention({.rows = rows, .kv = kv.data(), .layout = &layout, .scale = 0.088f});
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 4e-9 * num_rows * num_keys * kHeadDim,
      benchmark::Counter::kIsRate);
}

void PackBench(benchmark::State& state) {
  const int32_t n = 3072, k = 1024;
  const std::vector<Bf16> w = RandomBf16(size_t{3072} * 1024);
  PackedWeight weight(n, k, DType::kBf16);
  for (auto _ : state) weight.PackRows(0, n, w.data(), DType::kBf16);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(weight.bytes()));
}

// K and V of one token and head.
void KvStoreBench(benchmark::State& state) {
  const KvLayout layout = {DType::kBf16, 1, 64, 1, 128};
  AlignedBuffer memory(layout.total_bytes());
  const std::vector<Bf16> row(128, ToBf16(0.5f));
  int32_t token = 0;
  for (auto _ : state) {
    std::byte* base = memory.data() + layout.Offset(0, token / 32 % 64, 0);
    layout.StoreK(base, token % 32, row.data());
    layout.StoreV(base, token % 32, row.data());
    ++token;
  }
}

// A row of Qwen3-0.6B's hidden size, intermediate size or vocabulary.
void RowBench(benchmark::State& state, Isa isa, const char* what) {
  const ScopedFpMode fp_mode;
  const auto made = MakeKernels(isa);
  const Kernels& kernels = *made.value();
  const auto n = static_cast<int32_t>(state.range(0));
  std::vector<float> x(n, 0.25f), out(n);
  for (auto _ : state) {
    if (what[0] == 'n') {
      kernels.RmsNorm(x.data(), x.data(), 1e-6f, n, out.data(), DType::kBf16, kRowPiece);
    }
    if (what[0] == 's') kernels.SiluMul(x.data(), x.data(), n, out.data(), DType::kBf16);
    if (what[0] == 'l') {
      const float max = kernels.FindLargest(x.data(), n, nullptr).max;
      benchmark::DoNotOptimize(kernels.LogSumExp(x.data(), max, n));
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void RegisterAll() {
  benchmark::RegisterBenchmark("Pack/bf16", PackBench)->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("KvStore/bf16", KvStoreBench);
  for (Isa isa : {Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2, Isa::kScalar}) {
    if (!MakeKernels(isa).ok()) continue;
    for (auto [what, n] : {std::pair{"norm", 1024}, {"silu_mul", 3072}, {"log_sum_exp", 151936}}) {
      benchmark::RegisterBenchmark(
          (std::string(what) + "/" + NameOf(isa)).c_str(),
          [=, name = what](benchmark::State& state) { RowBench(state, isa, name); })
          ->Arg(n);
    }
    for (DType dtype : {DType::kBf16, DType::kF32}) {
      const std::string suffix = std::string("/") + NameOf(isa) + "/" + NameOf(dtype);
      for (const Shape& shape : kShapes) {
        auto* bench = benchmark::RegisterBenchmark(
            ("Gemm" + suffix + "/" + shape.name + "/m").c_str(),
            [=](benchmark::State& state) { GemmBench(state, isa, dtype, shape); });
        for (int m : {1, 2, 4, 16, 128, 512}) {
          if (isa != Isa::kScalar || m <= 16) bench->Arg(m);
        }
        bench->Unit(benchmark::kMicrosecond);
      }
      benchmark::RegisterBenchmark(
          ("Attention" + suffix + "/rows").c_str(),
          [=](benchmark::State& state) { AttentionBench(state, isa, dtype); })
          ->Args({2, 1024})
          ->Args({16, 1024})
          ->Args({32, 1024})
          ->Args({64, 1024})
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
