#include "bench/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <span>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/blocks/block_quantizer.h"
#include "base/random.h"
#include "base/threads/thread_team.h"
#include "bench/kernels/draws.h"
#include "bench/kernels/limits.h"
#include "bench/kernels/onednn.h"
#include "bench/serving/load_report.h"
#include "kernels/kernels.h"
#include "kernels/row_tiles.h"
#include "model/forward/product_cut.h"
#include "runtime/free_memory.h"
#include "server/json/json.h"

namespace skein {
namespace {

std::vector<Bf16> RandomValues(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = ToBf16(static_cast<float>(random.Uniform()) * 2 - 1);
  return values;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU time of all threads of this process.
double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Called after work of oneDNN, whose OpenMP threads spin for some milliseconds before they sleep.
// Limits that are measured meanwhile would be too low. Therefore this waits until the process is
// idle during 5 ms, but not longer than 0.2 s: with OMP_WAIT_POLICY=active the threads never sleep.
void WaitForIdleThreads() {
  constexpr int kMaxWindows = 40;
  constexpr double kIdleShare = 0.1;  // of one core
  for (int i = 0; i < kMaxWindows; ++i) {
    const double start = Now(), used = CpuSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (CpuSeconds() - used < kIdleShare * (Now() - start)) return;
  }
}

int32_t RoundUp(int32_t n, int32_t unit) { return CeilDiv(n, unit) * unit; }

// Random rows for a product, in the type that the weights need.
struct Activations {
  Activations(int32_t m, int32_t num_terms, DType dtype, bool in_tiles, const Kernels& kernels)
      : rows(m), k(num_terms), values(RandomValues(size_t(m) * k, 2)) {
    if (in_tiles) {
      tiles = AlignedBuffer(size_t(RoundUp(m, kRowTileRows)) * k * sizeof(Bf16));
      auto* to = reinterpret_cast<Bf16*>(tiles.data());
      for (int64_t r = 0; r < m; ++r) {
        for (int32_t i = 0; i < k; ++i) to[RowTileIndex(r, i, k)] = values[r * k + i];
      }
    }
    if (!TakesInt8Rows(dtype)) return;
    quantized.resize(values.size());
    const int32_t num_blocks = dtype == DType::kBlocks ? k / kBlockTerms : 0;
    blocks.resize(size_t(m) * num_blocks);
    for (int32_t i = 0; i < m; ++i) {
      const Bf16* row = &values[size_t(i) * k];
      int8_t* out = &quantized[size_t(i) * k];
      if (dtype == DType::kBlocks) {
        kernels.QuantizeBlocks(row, DType::kBf16, k, out, &blocks[size_t(i) * num_blocks]);
      } else {
        scales.push_back(kernels.Quantize(row, DType::kBf16, k, out));
      }
    }
  }

  const void* row(int64_t i) const {
    if (tiles.size() > 0) return tiles.data() + i * k * static_cast<int64_t>(sizeof(Bf16));
    return quantized.empty() ? static_cast<const void*>(&values[i * k]) : &quantized[i * k];
  }

  int32_t rows;
  int32_t k;
  std::vector<Bf16> values;
  AlignedBuffer tiles;            // kernels/row_tiles.h; k is a multiple of kRowPiece
  std::vector<int8_t> quantized;  // int8 elements, with their scales
  std::vector<float> scales;
  std::vector<RowBlock> blocks;  // [rows, k / 32] for weights of blocks
};

// One product, with enough copies of its weights that they must be read from memory.
class ProductBench {
 public:
  ProductBench(const ProductToMeasure& product, const KernelBenchOptions& options,
               const Kernels& kernels, LimitMeter& meter, ThreadTeam& team)
      : product_(product), options_(options), kernels_(kernels), meter_(meter), team_(team) {
    rows_of_w_ = RandomValues(size_t(product.n) * product.k, 1);
    const int32_t num_panels = CeilDiv(product.n, kPanelCols);
    if (options.dtype == DType::kBlocks) QuantizeWeights();
    do {
      weights_.push_back(
          options.dtype == DType::kBlocks
              ? PackedWeight(product.n, product.k, std::vector(num_panels, options.format))
              : PackedWeight(product.n, product.k, options.dtype));
      team.Run(0, num_panels, [&](int panel, int) { PackPanel(panel, weights_.back()); });
    } while (weights_.size() * weights_[0].bytes() < options.weight_bytes);
  }

  // Measures the product with m rows. Adds the limits that the machine had meanwhile to
  // `all_limits`.
  Json Measure(int32_t m, std::vector<MachineLimits>* all_limits) {
    const bool tiles = product_.tiles && product_.k % kRowPiece == 0 &&
                       NumericClassOf(kernels_.isa(), options_.dtype) == NumericClass::kAmx;
    const Activations a(m, product_.k, options_.dtype, tiles, kernels_);
    AlignedBuffer out(OutBytes(m));
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
    if (peer != nullptr) WaitForIdleThreads();  // oneDNN has just reordered its weights
    MachineLimits before = meter_.Now(kernels_.isa(), options_.dtype);
    // A sample multiplies by one copy of the weights after the other for about 20 ms, at least
    // once.
    const int calls = std::clamp(static_cast<int>(0.02 / floor(before)), 1, 1000);
    std::vector<double> own, other, fractions;
    // The first sample is a warm-up.
    for (int sample = 0; sample <= options_.num_samples; ++sample) {
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
      before = after;
      if (peer == nullptr) continue;
      WaitForIdleThreads();
      before = meter_.Now(kernels_.isa(), options_.dtype);
    }
    const double seconds = Median(own);
    Json row;
    row["model"] = product_.model;
    row["name"] = product_.name;
    row["m"] = m;
    row["k"] = product_.k;
    row["n"] = product_.n;
    row["dtype"] = options_.dtype == DType::kBlocks ? std::string(TraitsOf(options_.format).name)
                                                    : NameOf(options_.dtype);
    row["tflops"] = flops / seconds * 1e-12;
    row["gbps"] = weight_bytes / seconds * 1e-9;
    row["fraction"] = Median(fractions);
    row["onednn_tflops"] = peer == nullptr ? Json() : Json(flops / Median(other) * 1e-12);
    row["onednn_dtype"] = peer == nullptr ? Json() : Json(NameOf(peer->dtype()));
    return row;
  }

 private:
  // The bytes of a row of blocks, as in a file.
  size_t BlockRowBytes() const {
    const BlockTraits& traits = TraitsOf(options_.format);
    return size_t(product_.k / traits.file_elements) * traits.file_bytes;
  }

  void QuantizeWeights() {
    blocks_of_w_.resize(product_.n * BlockRowBytes());
    team_.Run(0, product_.n, [&](int row, int) {
      const std::span from = std::span(rows_of_w_).subspan(size_t(row) * product_.k, product_.k);
      std::vector<float> wide;
      for (const Bf16 value : from) wide.push_back(ToFloat(value));
      QuantizeBlocks(options_.format, wide, &blocks_of_w_[row * BlockRowBytes()]);
    });
  }

  void PackPanel(int32_t panel, PackedWeight& w) const {
    const int32_t row = panel * kPanelCols, rows = std::min(kPanelCols, product_.n - row);
    if (w.dtype() == DType::kBlocks) {
      w.PackBlocks(row, rows, &blocks_of_w_[row * BlockRowBytes()], options_.format);
    } else {
      w.PackRows(row, rows, &rows_of_w_[size_t(row) * product_.k], DType::kBf16);
    }
  }

  int NextIndex() { return static_cast<int>(next_++ % weights_.size()); }
  const PackedWeight& Next() { return weights_[NextIndex()]; }

  int32_t num_results() const { return product_.swiglu ? product_.n / 2 : product_.n; }

  ProductCut Cut(int32_t m) const {
    return CutProduct({.m = m,
                       .n = num_results(),
                       .k = product_.k,
                       .swiglu = product_.swiglu,
                       .element_bytes = static_cast<size_t>(SizeOf(options_.dtype)),
                       .unit = UnitOf(kernels_.isa(), options_.dtype),
                       .col_unit = std::max(product_.head_dim, 1)},
                      team_.num_threads());
  }

  // Heads are the results of one ticket at a time, in memory of the thread that computes them.
  int64_t HeadSums(const ProductCut& cut) const {
    return int64_t{cut.rows} * (cut.cols + kPanelCols);
  }
  size_t OutBytes(int32_t m) const {
    if (product_.head_dim > 0) return team_.num_threads() * HeadSums(Cut(m)) * sizeof(float);
    return size_t(RoundUp(m, kRowTileRows)) * RoundUp(num_results(), kRowPiece) * sizeof(float);
  }

  // Runs the product as ForwardPass runs an operator.
  void Run(const Activations& a, const PackedWeight& w, std::byte* out) {
    const int32_t n = num_results();
    const ProductCut cut = Cut(a.rows);
    const DType out_dtype = product_.swiglu ? DType::kBf16 : DType::kF32;
    const bool heads = product_.head_dim > 0, tiles = a.tiles.size() > 0;
    const bool out_tiles = tiles && product_.swiglu;
    const int64_t ldo = heads ? cut.cols + kPanelCols : out_tiles ? RoundUp(n, kRowPiece) : n;
    team_.Run(0, cut.num_tickets(), [&](int ticket, int thread) {
      const int64_t row = cut.row_begin(ticket);
      const int32_t col = cut.col_begin(ticket);
      const int64_t first = heads ? thread * HeadSums(cut) : row * ldo;
      kernels_.Gemm({
          .a = a.row(row),
          .lda = product_.k,
          .a_scales = a.scales.empty() ? nullptr : &a.scales[row],
          .a_blocks = a.blocks.empty() ? nullptr : &a.blocks[row * (product_.k / kBlockTerms)],
          .m = std::min(cut.rows, a.rows - static_cast<int32_t>(row)),
          .w = &w,
          .n_begin = col,
          .n_end = std::min(col + cut.cols, n),
          .add_to_out = product_.residual,
          .up_begin = product_.swiglu ? n : 0,
          .activation = product_.swiglu ? Activation::kSilu : Activation::kNone,
          .out = out + first * static_cast<int64_t>(SizeOf(out_dtype)),
          .ldo = ldo,
          .out_begin = heads ? col : 0,
          .out_dtype = out_dtype,
          .a_tiles = tiles,
          .out_tiles = out_tiles,
      });
    });
  }

  const ProductToMeasure& product_;
  const KernelBenchOptions& options_;
  const Kernels& kernels_;
  LimitMeter& meter_;
  ThreadTeam& team_;
  std::vector<Bf16> rows_of_w_;
  std::vector<std::byte> blocks_of_w_;  // the same, as in a file; empty without blocks
  std::vector<PackedWeight> weights_;
  size_t next_ = 0;
};

// Checks that there is memory for the product's rows and results, and for those of oneDNN.
Status CheckMemory(const KernelBenchOptions& options) {
  const int64_t free_bytes = FreeMemoryBytes();
  for (const ProductToMeasure& product : options.products) {
    for (const int32_t m : options.rows) {
      const int64_t bytes = m * (int64_t{8} * product.n + int64_t{6} * product.k);
      if (bytes <= free_bytes) continue;
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format("--rows {}: rows and results of {} {} take {:.1f} GB, and {:.1f} GB "
                      "of memory are free; give fewer rows, or another --model",
                      m, product.model, product.name, static_cast<double>(bytes) * 1e-9,
                      static_cast<double>(free_bytes) * 1e-9),
          "--rows");
    }
  }
  return Status();
}

}  // namespace

std::vector<ProductToMeasure> QwenProducts() {
  struct Shape {
    const char* model;
    int32_t hidden, q, kv, intermediate;
  };
  constexpr int32_t kVocab = 151936, kHeadDim = 128;
  std::vector<ProductToMeasure> products;
  for (const Shape& s :
       {Shape{"Qwen3-0.6B", 1024, 2048, 1024, 3072}, Shape{"Qwen3-4B", 2560, 4096, 1024, 9728}}) {
    const auto add = [&](const char* name, int32_t n, int32_t k) -> ProductToMeasure& {
      products.push_back({.model = s.model, .name = name, .n = n, .k = k, .tiles = true});
      return products.back();
    };
    add("qkv", s.q + 2 * s.kv, s.hidden).head_dim = kHeadDim;
    add("o", s.hidden, s.q).residual = true;
    add("gate_up", 2 * s.intermediate, s.hidden).swiglu = true;
    add("down", s.hidden, s.intermediate).residual = true;
    add("output", kVocab, s.hidden).tiles = false;
  }
  return products;
}

Result<Json> RunKernelBench(const KernelBenchOptions& options) {
  SKEIN_RETURN_IF_ERROR(CheckMemory(options));
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Kernels> kernels, MakeKernels(isa));
  ThreadTeam team(ThreadsOrAll(options.threads));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<LimitMeter> meter, LimitMeter::Make(&team));
  std::vector<MachineLimits> limits;
  Json gemm = Json::array();
  for (const ProductToMeasure& product : options.products) {
    ProductBench bench(product, options, *kernels, *meter, team);
    for (const int32_t m : options.rows) gemm.push_back(bench.Measure(m, &limits));
  }
  return Json{{"limits", LimitsToJson(MedianOf(limits), isa, options.dtype)},
              {"isa", NameOf(isa)},
              {"threads", team.num_threads()},
              {"gemm", std::move(gemm)},
              {"draws", MeasureDraws(*kernels, options.num_samples)}};
}

}  // namespace skein
