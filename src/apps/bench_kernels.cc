#include "apps/bench_kernels.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "apps/bench_limits.h"
#include "apps/bench_onednn.h"
#include "apps/load_report.h"
#include "base/random.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "model/forward_cut.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Bf16> RandomValues(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = ToBf16(static_cast<float>(random.Uniform()) * 2 - 1);
  return values;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Random rows that a product takes, as the weights' type asks.
struct Activations {
  Activations(int32_t m, int32_t num_terms, DType dtype, const Kernels& kernels)
      : rows(m), k(num_terms), values(RandomValues(size_t(m) * k, 2)) {
    if (dtype != DType::kInt8) return;
    quantized.resize(values.size());
    for (int32_t i = 0; i < m; ++i) {
      scales.push_back(
          kernels.Quantize(&values[size_t(i) * k], DType::kBf16, k, &quantized[size_t(i) * k]));
    }
  }

  const void* row(int64_t i) const {
    return quantized.empty() ? static_cast<const void*>(&values[i * k]) : &quantized[i * k];
  }

  int32_t rows;
  int32_t k;
  std::vector<Bf16> values;
  std::vector<int8_t> quantized;  // of int8, with their scales
  std::vector<float> scales;
};

// One product with its weights, as often as they are needed to come from memory.
class Bench {
 public:
  Bench(const ProductToMeasure& product, const KernelBenchOptions& options, const Kernels& kernels,
        LimitMeter& meter, ThreadTeam& team)
      : product_(product), options_(options), kernels_(kernels), meter_(meter), team_(team) {
    rows_of_w_ = RandomValues(size_t(product.n) * product.k, 1);
    do {
      weights_.emplace_back(product.n, product.k, options.dtype);
      PackedWeight& w = weights_.back();
      team.Run(0, CeilDiv(product.n, kPanelCols), [&](int panel, int) {
        const int32_t row = panel * kPanelCols;
        w.PackRows(row, std::min(kPanelCols, product.n - row), &rows_of_w_[size_t(row) * product.k],
                   DType::kBf16);
      });
    } while (weights_.size() * weights_[0].bytes() < options.weight_bytes);
  }

  // Adds what the machine allowed meanwhile to `all_limits`.
  Json Measure(int32_t m, std::vector<MachineLimits>* all_limits) {
    const Activations a(m, product_.k, options_.dtype, kernels_);
    std::vector<float> out(size_t(m) * product_.n);
    std::unique_ptr<OneDnnProduct> peer;
    if (options_.dtype == DType::kBf16) {
      peer = OneDnnProduct::Make(m, product_.n, product_.k, a.values, rows_of_w_,
                                 static_cast<int>(weights_.size()), team_.num_threads());
    }
    const double flops = 2.0 * m * product_.n * product_.k;
    const auto weight_bytes = static_cast<double>(weights_[0].bytes());
    const auto floor = [&](const MachineLimits& limits) {
      return RooflineSeconds(limits, kernels_.isa(), options_.dtype, flops, weight_bytes);
    };
    MachineLimits before = meter_.Now(kernels_.isa(), options_.dtype);
    // A sample walks through the weights for about 20 ms, at least once.
    const int calls = std::clamp(static_cast<int>(0.02 / floor(before)), 1, 1000);
    std::vector<double> own, other, fractions;
    for (int sample = 0; sample <= options_.num_samples; ++sample) {  // the first warms up
      const double start = Now();
      for (int i = 0; i < calls; ++i) Run(a, Next(), out.data());
      const double seconds = (Now() - start) / calls;
      const MachineLimits after = meter_.Now(kernels_.isa(), options_.dtype);
      const double peer_start = Now();
      for (int i = 0; i < calls && peer != nullptr; ++i) peer->Run(NextIndex());
      if (sample > 0) {
        own.push_back(seconds);
        other.push_back((Now() - peer_start) / calls);
        fractions.push_back(floor(MeanOf(before, after)) / seconds);
        all_limits->push_back(after);
      }
      before = peer == nullptr ? after : meter_.Now(kernels_.isa(), options_.dtype);
    }
    const double seconds = Median(own);
    Json row;
    row["model"] = product_.model;
    row["name"] = product_.name;
    row["m"] = m;
    row["k"] = product_.k;
    row["n"] = product_.n;
    row["dtype"] = NameOf(options_.dtype);
    row["tflops"] = flops / seconds * 1e-12;
    row["gbps"] = weight_bytes / seconds * 1e-9;
    row["fraction"] = Median(fractions);
    row["onednn_tflops"] = peer == nullptr ? Json() : Json(flops / Median(other) * 1e-12);
    return row;
  }

 private:
  int NextIndex() { return static_cast<int>(next_++ % weights_.size()); }
  const PackedWeight& Next() { return weights_[NextIndex()]; }

  // As ForwardPass runs an operator.
  void Run(const Activations& a, const PackedWeight& w, float* out) {
    const int32_t up = product_.swiglu ? product_.n / 2 : 0;
    const int32_t n = product_.swiglu ? up : product_.n;
    const ProductCut cut = CutProduct({.m = a.rows,
                                       .n = n,
                                       .k = product_.k,
                                       .swiglu = product_.swiglu,
                                       .element_bytes = static_cast<size_t>(SizeOf(w.dtype())),
                                       .matrix_unit = kernels_.isa() == Isa::kAmx},
                                      team_.num_threads());
    const DType out_dtype = product_.swiglu ? DType::kBf16 : DType::kF32;
    team_.Run(0, cut.num_tickets(), [&](int ticket, int) {
      const int64_t row = cut.row_begin(ticket);
      const int32_t col = cut.col_begin(ticket);
      kernels_.Gemm({
          .a = a.row(row),
          .lda = product_.k,
          .a_scales = a.scales.empty() ? nullptr : &a.scales[row],
          .m = std::min(cut.rows, a.rows - static_cast<int32_t>(row)),
          .w = &w,
          .n_begin = col,
          .n_end = std::min(col + cut.cols, n),
          .up_begin = up,
          .out =
              reinterpret_cast<std::byte*>(out) + row * n * static_cast<int64_t>(SizeOf(out_dtype)),
          .ldo = n,
          .out_dtype = out_dtype,
      });
    });
  }

  const ProductToMeasure& product_;
  const KernelBenchOptions& options_;
  const Kernels& kernels_;
  LimitMeter& meter_;
  ThreadTeam& team_;
  std::vector<Bf16> rows_of_w_;
  std::vector<PackedWeight> weights_;
  size_t next_ = 0;
};

}  // namespace

std::vector<ProductToMeasure> QwenProducts() {
  struct Shape {
    const char* model;
    int32_t hidden, q, kv, intermediate;
  };
  constexpr int32_t kVocab = 151936;
  std::vector<ProductToMeasure> products;
  for (const Shape& s :
       {Shape{"Qwen3-0.6B", 1024, 2048, 1024, 3072}, Shape{"Qwen3-4B", 2560, 4096, 1024, 9728}}) {
    products.push_back({s.model, "qkv", s.q + 2 * s.kv, s.hidden});
    products.push_back({s.model, "o", s.hidden, s.q});
    products.push_back({s.model, "gate_up", 2 * s.intermediate, s.hidden, /*swiglu=*/true});
    products.push_back({s.model, "down", s.hidden, s.intermediate});
    products.push_back({s.model, "output", kVocab, s.hidden});
  }
  return products;
}

Result<Json> RunKernelBench(const KernelBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Kernels> kernels, MakeKernels(isa));
  ThreadTeam team(options.threads > 0
                      ? options.threads
                      : std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<LimitMeter> meter, LimitMeter::Make(&team));
  std::vector<MachineLimits> limits;
  Json gemm = Json::array();
  for (const ProductToMeasure& product : options.products) {
    Bench bench(product, options, *kernels, *meter, team);
    for (const int32_t m : options.rows) gemm.push_back(bench.Measure(m, &limits));
  }
  return Json{{"limits", LimitsToJson(MedianOf(limits), isa, options.dtype)},
              {"isa", NameOf(isa)},
              {"threads", team.num_threads()},
              {"gemm", std::move(gemm)}};
}

}  // namespace skein
