// The cost of two rules of the numeric contract: each is measured beside the engine without it. On
// a machine with the matrix unit:
//
//   ablation_bench [--json FILE] [--samples N] [--threads N]
//
// 1. One row goes through the matrix unit, as ten thousand do. Without that rule: an AVX-512
//    product for one row (ablation_avx512.h), over the same packed weights.
// 2. Attention is cut at absolute positions only, so that a sequence's walk is one ticket for each
//    KV head. Without that rule: the keys of all sequences and heads are cut into equal parts, as
//    many as the threads like, and merged. Both cuts run the same AVX-512 walk; the engine's own
//    attention stands beside them. Shapes: a decode step of one layer of Qwen3-0.6B.
//
// The variants take turns; medians. "Bits that differ": of the outputs, between the engine's way
// and the other in (1); between the cuts for two and for three threads in (2).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "ablation_avx512.h"
#include "base/aligned_buffer.h"
#include "base/check.h"
#include "base/random.h"
#include "base/threads/thread_team.h"
#include "kernels/kernels.h"
#include "model/forward/product_cut.h"

namespace skein::ablation {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMemoryBytes = size_t{256} << 20;  // walked through: more than any cache in use
constexpr int32_t kKvHeads = 8;
constexpr int32_t kTicketsPerThread = 4;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::vector<Bf16> RandomBf16(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = ToBf16(static_cast<float>(random.Uniform()) * 2 - 1);
  return values;
}

const uint16_t* Bits(const std::vector<Bf16>& values) {
  return reinterpret_cast<const uint16_t*>(values.data());
}

template <typename T>
double DifferingBits(const std::vector<T>& a, const std::vector<T>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  return static_cast<double>(count) / static_cast<double>(a.size());
}

float LargestDifference(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(ToFloat(Bf16{a[i]}) - ToFloat(Bf16{b[i]})));
  }
  return largest;
}

// Medians of the seconds that each variant takes, in turn; the first round warms up.
std::vector<double> TakeTurns(int num_samples, const std::vector<std::function<void()>>& variants) {
  std::vector<std::vector<double>> seconds(variants.size());
  for (int sample = 0; sample <= num_samples; ++sample) {
    for (size_t i = 0; i < variants.size(); ++i) {
      const double begin = Now();
      variants[i]();
      if (sample > 0) seconds[i].push_back(Now() - begin);
    }
  }
  std::vector<double> medians;
  for (auto& of_one : seconds) medians.push_back(Median(std::move(of_one)));
  return medians;
}

struct Product {
  const char* name;
  int32_t n, k;
};

Json MeasureOneRow(const Product& product, const Kernels& kernels, ThreadTeam& team, int samples) {
  const auto [name, n, k] = product;
  const std::vector<Bf16> rows = RandomBf16(size_t(n) * k, 1), a = RandomBf16(k, 2);
  std::vector<PackedWeight> weights;
  do {
    weights.emplace_back(n, k, DType::kBf16);
    weights.back().PackRows(0, n, rows.data(), DType::kBf16);
  } while (weights.size() * weights[0].bytes() < kMemoryBytes);
  const ProductCut cut = CutProduct(
      {.m = 1, .n = n, .k = k, .element_bytes = sizeof(Bf16), .unit = ProductUnit::kMatrix},
      team.num_threads());
  std::vector<float> engine_out(n), other_out(n);
  const auto all = [&](const auto& ticket_of) {
    return [&, ticket_of] {
      for (const PackedWeight& w : weights) {
        team.Run(0, cut.num_tickets(), [&](int ticket, int) {
          const int32_t col = cut.col_begin(ticket);
          ticket_of(w, col, std::min(col + cut.cols, n));
        });
      }
    };
  };
  const std::vector<double> seconds =
      TakeTurns(samples, {all([&](const PackedWeight& w, int32_t col, int32_t end) {
                            kernels.Gemm({.a = a.data(),
                                          .lda = k,
                                          .m = 1,
                                          .w = &w,
                                          .n_begin = col,
                                          .n_end = end,
                                          .out = engine_out.data(),
                                          .ldo = n});
                          }),
                          all([&](const PackedWeight& w, int32_t col, int32_t end) {
                            OneRowProduct(Bits(a), w.panel(col / kPanelCols),
                                          (end - col) / kPanelCols, k, other_out.data() + col);
                          })});
  const double bytes = static_cast<double>(weights[0].bytes() * weights.size());
  Json row = {{"name", name}, {"k", k}, {"n", n}};
  row["engine_gbps"] = bytes / seconds[0] * 1e-9;
  row["avx512_gbps"] = bytes / seconds[1] * 1e-9;
  row["cost"] = seconds[0] / seconds[1] - 1;
  row["bits_differ"] = DifferingBits(engine_out, other_out);
  std::printf("%-8s  engine %5.1f GB/s  AVX-512 %5.1f GB/s  cost %+5.1f %%  bits differ %4.1f %%\n",
              name, row["engine_gbps"].get<double>(), row["avx512_gbps"].get<double>(),
              100 * row["cost"].get<double>(), 100 * row["bits_differ"].get<double>());
  return row;
}

// A decode step's attention in one layer: sequences of these lengths over scattered blocks.
class DecodeAttention {
 public:
  DecodeAttention(std::vector<int32_t> lengths, const Kernels& kernels, ThreadTeam& team)
      : lengths_(std::move(lengths)), kernels_(kernels), team_(team) {
    int32_t num_blocks = 0;
    for (const int32_t length : lengths_) num_blocks += CeilDiv(length, kKvBlockTokens);
    layout_ = {DType::kBf16, 1, num_blocks, kKvHeads, kHeadDim};
    layout_.num_layers = static_cast<int32_t>(kMemoryBytes / layout_.layer_bytes()) + 1;
    memory_ = AlignedBuffer(layout_.total_bytes());
    // Any order of random values is keys and values: they are stored nowhere else.
    const std::vector<Bf16> values = RandomBf16(size_t{1} << 20, 3);
    for (size_t at = 0; at < memory_.size(); at += 2 * values.size()) {
      std::memcpy(memory_.data() + at, values.data(),
                  std::min(2 * values.size(), memory_.size() - at));
    }
    std::vector<int32_t> blocks(num_blocks);
    std::iota(blocks.begin(), blocks.end(), 0);
    Random random(4);
    for (int32_t i = num_blocks - 1; i > 0; --i) std::swap(blocks[i], blocks[random.Between(0, i)]);
    for (const int32_t length : lengths_) {
      const auto begin = blocks.end() - CeilDiv(length, kKvBlockTokens);
      tables_.emplace_back(begin, blocks.end());
      blocks.erase(begin, blocks.end());
    }
    q_ = RandomBf16(num_units() * kUnitValues, 5);
    out_.resize(q_.size());
  }

  int32_t num_units() const { return static_cast<int32_t>(lengths_.size()) * kKvHeads; }
  const std::vector<uint16_t>& out() const { return out_; }

  // One ticket for each sequence and KV head, by the engine's kernel.
  void Engine() {
    EachLayer([this](int32_t layer) {
      team_.Run(0, num_units(), [&](int unit, int) {
        const std::vector<int32_t>& table = tables_[unit / kKvHeads];
        AttentionRow rows[kGroup];
        for (int r = 0; r < kGroup; ++r) {
          rows[r] = {&q_[unit * kUnitValues + r * kHeadDim],
                     &out_[unit * kUnitValues + r * kHeadDim], lengths_[unit / kKvHeads],
                     static_cast<int32_t>(table.size()), table.data()};
        }
        kernels_.Attention({.rows = rows,
                            .kv = memory_.data() + layout_.Offset(layer, 0, unit % kKvHeads),
                            .layout = &layout_,
                            .scale = kScale});
      });
    });
  }

  // The same tickets by the AVX-512 walk.
  void WholeWalks() {
    EachLayer([this](int32_t layer) {
      team_.Run(0, num_units(), [&](int unit, int) {
        WalkState state;
        Walk(WalkOf(layer, unit), 0, NumGroups(unit), &state);
        Finish(state, &out_[unit * kUnitValues]);
      });
    });
  }

  // Equal parts of all keys for `num_threads` threads, wherever that cuts them, then merged.
  void VariableSplits(int num_threads) {
    CutEqually(num_threads * kTicketsPerThread);
    EachLayer([this](int32_t layer) {
      team_.Run(0, static_cast<int>(parts_.size()) - 1, [&](int part, int) {
        for (int32_t i = parts_[part]; i < parts_[part + 1]; ++i) {
          const Piece& piece = pieces_[i];
          Walk(WalkOf(layer, piece.unit), piece.first, piece.last, &states_[i]);
        }
      });
      team_.Run(0, num_units(), [&](int unit, int) {
        WalkState& total = states_[first_piece_[unit]];
        for (int32_t i = first_piece_[unit] + 1; i < first_piece_[unit + 1]; ++i) {
          Merge(states_[i], &total);
        }
        Finish(total, &out_[unit * kUnitValues]);
      });
    });
  }

  int32_t num_layers() const { return layout_.num_layers; }
  double bytes() const {  // read in all layers
    double keys = 0;
    for (const int32_t length : lengths_) keys += length;
    return keys * 2 * kHeadDim * 2 * kKvHeads * layout_.num_layers;
  }

 private:
  static constexpr int32_t kUnitValues = kGroup * kHeadDim;
  static constexpr float kScale = 0.08838835f;  // 1 / sqrt(128)

  struct Piece {
    int32_t unit, first, last;  // groups of keys
  };

  template <typename Fn>
  void EachLayer(const Fn& fn) {
    for (int32_t layer = 0; layer < layout_.num_layers; ++layer) fn(layer);
  }
  int32_t NumGroups(int32_t unit) const { return CeilDiv(lengths_[unit / kKvHeads], kGroupKeys); }

  Walked WalkOf(int32_t layer, int32_t unit) const {
    return {.q = Bits(q_) + unit * kUnitValues,
            .kv = memory_.data() + layout_.Offset(layer, 0, unit % kKvHeads),
            .block_stride = layout_.block_stride(),
            .block_table = tables_[unit / kKvHeads].data(),
            .num_keys = lengths_[unit / kKvHeads],
            .scale2 = kScale * 1.442695f};
  }

  void CutEqually(int32_t num_parts) {
    int64_t total = 0;
    for (int32_t unit = 0; unit < num_units(); ++unit) total += NumGroups(unit);
    pieces_.clear();
    parts_ = {0};
    first_piece_.clear();
    int64_t done = 0;
    for (int32_t unit = 0; unit < num_units(); ++unit) {
      first_piece_.push_back(static_cast<int32_t>(pieces_.size()));
      for (int32_t first = 0; first < NumGroups(unit);) {
        const int64_t part_end = total * static_cast<int64_t>(parts_.size()) / num_parts;
        const auto count = static_cast<int32_t>(
            std::min<int64_t>(NumGroups(unit) - first, std::max<int64_t>(part_end - done, 1)));
        pieces_.push_back({unit, first, first + count});
        first += count;
        done += count;
        if (done >= part_end) parts_.push_back(static_cast<int32_t>(pieces_.size()));
      }
    }
    first_piece_.push_back(static_cast<int32_t>(pieces_.size()));
    states_.resize(pieces_.size());
  }

  const std::vector<int32_t> lengths_;
  const Kernels& kernels_;
  ThreadTeam& team_;
  KvLayout layout_;
  AlignedBuffer memory_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<Bf16> q_;        // [units, kGroup, kHeadDim]
  std::vector<uint16_t> out_;  // the same
  std::vector<Piece> pieces_;
  std::vector<int32_t> parts_;        // [num_parts + 1]: the pieces of each
  std::vector<int32_t> first_piece_;  // [units + 1]
  std::vector<WalkState> states_;
};

Json MeasureAttention(const char* name, const std::vector<int32_t>& lengths, const Kernels& kernels,
                      ThreadTeam& team, int samples) {
  DecodeAttention attention(lengths, kernels, team);
  attention.VariableSplits(2);
  const std::vector<uint16_t> with_two = attention.out();
  attention.VariableSplits(3);
  const double bits_differ = DifferingBits(with_two, attention.out());
  // Both compute the same function: whole walks and the engine agree but for rounding.
  attention.WholeWalks();
  const std::vector<uint16_t> whole = attention.out();
  attention.Engine();
  SKEIN_CHECK(LargestDifference(whole, attention.out()) < 0.02f);
  const std::vector<double> seconds =
      TakeTurns(samples, {[&] { attention.Engine(); }, [&] { attention.WholeWalks(); },
                          [&] { attention.VariableSplits(team.num_threads()); }});
  Json row = {{"name", name}, {"sequences", lengths.size()}};
  row["engine_us"] = seconds[0] / attention.num_layers() * 1e6;
  row["whole_us"] = seconds[1] / attention.num_layers() * 1e6;
  row["split_us"] = seconds[2] / attention.num_layers() * 1e6;
  row["engine_gbps"] = attention.bytes() / seconds[0] * 1e-9;
  row["cost"] = seconds[1] / seconds[2] - 1;
  row["bits_differ"] = bits_differ;
  std::printf(
      "%-22s  engine %7.1f us  whole %7.1f us  split %7.1f us  cost %+5.1f %%  bits differ %4.1f "
      "%%\n",
      name, row["engine_us"].get<double>(), row["whole_us"].get<double>(),
      row["split_us"].get<double>(), 100 * row["cost"].get<double>(), 100 * bits_differ);
  return row;
}

int Main(int argc, char** argv) {
  std::string file;
  int samples = 7;
  int threads = ThreadsOrAll(0);
  CLI::App app("What two rules of the numeric contract cost");
  app.add_option("--json", file, "Write the results to this file");
  app.add_option("--samples", samples, "Of each figure, in turn")->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads, "Threads that compute")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  const auto kernels = MakeKernels(Isa::kAmx);
  if (!kernels.ok()) {
    std::fprintf(stderr, "ablation_bench: %s\n", kernels.status().message().c_str());
    return 1;
  }
  ThreadTeam team(threads);
  Json json;
  json["threads"] = threads;
  for (const Product& product :
       {Product{"qkv", 4096, 1024}, Product{"o", 1024, 2048}, Product{"gate_up", 6144, 1024},
        Product{"down", 1024, 3072}, Product{"output", 151936, 1024}}) {
    json["one_row"].push_back(MeasureOneRow(product, *kernels.value(), team, samples));
  }
  const std::vector<int32_t> mixed = {130, 700, 260, 1500, 90, 410, 3000, 200};
  for (const auto& [name, lengths] :
       {std::pair("one of 500", std::vector<int32_t>{500}),
        std::pair("one of 4,000", std::vector<int32_t>{4000}),
        std::pair("eight of 90 to 3,000", mixed),
        std::pair("sixteen of 1,000", std::vector<int32_t>(16, 1000))}) {
    json["attention"].push_back(MeasureAttention(name, lengths, *kernels.value(), team, samples));
  }
  if (!file.empty()) std::ofstream(file) << json.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace skein::ablation

int main(int argc, char** argv) { return skein::ablation::Main(argc, argv); }
