#include "cuda/executor/operators/operator_slices.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "cuda/executor/activations.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// Assumed of a launch, however short.
constexpr double kLaunchUs = 4.0;
constexpr double kBytesPerUs = 3e6;
// Assumed of the link between two devices: no machine with several has been measured.
constexpr double kLinkBytesPerUs = 2e5;
// Assumed of the delta rule, which takes the tokens of a row one after the other.
constexpr double kDeltaTokenUs = 0.25;
// A device runs kProcessors blocks at the same time, of the rows of a tile and so many columns of
// weights each.
constexpr int64_t kBlockColumns = 128;

// Multiplications with an addition in a microsecond. bf16: what an H200 has shown of products with
// persistent blocks, two thirds of what it has shown without, and what it has shown of attention.
// The others are assumed.
double RateOf(DType matrices, bool persistent) {
  if (persistent) return 3e8;
  return matrices == DType::kF32 ? 2e7 : matrices == DType::kBlocks ? 1e8 : 2e8;
}
double AttentionRateOf(DType dtype) { return dtype == DType::kF32 ? 2e7 : 9e7; }

double BytesOf(DType matrices) {
  return matrices == DType::kBlocks ? 0.625 : static_cast<double>(SizeOf(matrices));
}

// The rows of a slice, where a row takes `row_us`: a multiple of `tile_rows`. Slices of at least
// half the time that they may take are tried. The best leave the fewest multiprocessors idle at
// the slices' ends; of these, the longest are taken. Wide matrices have few rows in a slice. If
// these waste more than a twentieth, slices of up to twice the time are tried, too.
int32_t RowsOfSlice(int32_t num_rows, int32_t tile_rows, double row_us, int64_t columns,
                    double slice_us) {
  if (row_us <= 0 || kLaunchUs + num_rows * row_us <= slice_us) return num_rows;
  const int64_t tiles = CeilDiv(num_rows, tile_rows);
  const int64_t blocks = CeilDiv(columns, kBlockColumns);
  const double fit = (slice_us - kLaunchUs) / (row_us * tile_rows);
  const auto most = static_cast<int64_t>(std::clamp<double>(fit, 1, static_cast<double>(tiles)));
  const auto turns = [&](int64_t rows) { return CeilDiv(rows * blocks, kProcessors); };
  int64_t best = most, least = 0;
  const auto attempt = [&](int64_t rows) {
    const int64_t cost = tiles / rows * turns(rows) + turns(tiles % rows);
    if (least > 0 && cost >= least) return;
    best = rows;
    least = cost;
  };
  for (int64_t rows = most; rows > most / 2; --rows) attempt(rows);
  const int64_t enough = turns(tiles) * 21 / 20 + 1;
  for (int64_t rows = most + 1; rows <= 2 * most && least > enough; ++rows) attempt(rows);
  return static_cast<int32_t>(best) * tile_rows;
}

// Slices of `step` units each.
void Cut(int32_t num_units, int32_t step, double unit_us, std::vector<OperatorSlice>* slices) {
  slices->clear();
  for (int32_t first = 0; first < num_units; first += step) {
    const int32_t count = std::min(step, num_units - first);
    slices->push_back({first, count, kLaunchUs + count * unit_us});
  }
}

}  // namespace

OperatorSlices::OperatorSlices(const ModelConfig& config, int32_t num_ranks, DType dtype,
                               DType matrices, bool persistent)
    : config_(config),
      num_ranks_(num_ranks),
      dtype_(dtype),
      matrices_(matrices),
      persistent_(persistent && matrices == DType::kBf16) {}

double OperatorSlices::ProductUs(int64_t rows, int64_t n, int64_t k) const {
  const double weights = static_cast<double>(n) * static_cast<double>(k);
  return kLaunchUs + std::max(static_cast<double>(rows) * weights / RateOf(matrices_, persistent_),
                              weights * BytesOf(matrices_) / kBytesPerUs);
}

double OperatorSlices::BytesUs(double bytes) { return kLaunchUs + bytes / kBytesPerUs; }
double OperatorSlices::LinkUs(double bytes) { return kLaunchUs + bytes / kLinkBytesPerUs; }

void OperatorSlices::Assign(const BatchWork& work, double slice_us) {
  const ModelConfig& c = config_;
  num_tokens_ = work.num_tokens;
  slice_us_ = slice_us;
  const int64_t hidden = c.hidden_size, q_width = int64_t{c.num_heads} * c.head_dim;
  const int64_t qkv_width = q_width + int64_t{2} * c.num_kv_heads * c.head_dim;
  const auto size = static_cast<double>(SizeOf(dtype_));
  const auto row = static_cast<double>(hidden), heads = static_cast<double>(qkv_width);
  // Shared experts and the layers of a decision head have widths of their own. The slices are those
  // of the widest.
  const int32_t gated = std::max(DenseMlpSize(c), c.decoder.shared_expert_size);
  const int32_t intermediate = std::max(gated, c.decision.intermediate_size);
  for (const int op : {kAttnNorm, kMlpNorm}) Whole(op, row * (4 + size));
  Whole(kHeadInput, row * 16);
  Whole(kActivate, intermediate * (4 + size));
  for (const int op : {kAttnBranch, kMlpBranch}) Whole(op, row * 12);
  Whole(kQkvNorm, heads * 8);
  Whole(kStoreHeads, heads * (4 + size));
  Whole(kFork, 0);
  Whole(kGather, 2 * (row * 4 + static_cast<double>(q_width) * size));
  Multiply(kQkv, qkv_width, hidden);
  Multiply(kO, hidden, q_width);
  Multiply(kGateUp, int64_t{2} * gated, hidden);
  Multiply(kUp, intermediate, hidden);
  Multiply(kDown, hidden, intermediate);
  Attend(work, -1, c.bidirectional ? kAllKeys : 0, &slices_[kAttention]);
  if (c.has_local_layers()) {
    Attend(work, work.locally_before, work.locally_after, &local_attention_);
  }
  if (const int32_t rows = c.encoder.relative.num_rows(); rows > 0) MultiplyTerms(rows);
  if (c.has_linear_layers() || c.decoder.attention_gate) Linear(work.delta_tokens);
  if (c.num_experts == 0) return;
  for (const int op : {kRoute, kChooseExperts, kListSlots}) Whole(op, c.num_experts * 4.0);
  const int32_t summed = c.experts_per_token + (c.decoder.shared_expert_size > 0 ? 1 : 0);
  Whole(kSumExperts, row * (8 + 4 * summed));
  MultiplyExperts(kExpertGateUp, int64_t{2} * c.expert_size, hidden);
  MultiplyExperts(kExpertDown, hidden, c.expert_size);
}

// The operators of linear layers, and of gates of attention.
void OperatorSlices::Linear(int32_t delta_tokens) {
  const LinearLayers& linear = config_.decoder.linear;
  const int64_t q_width = int64_t{config_.num_heads} * config_.head_dim;
  const auto size = static_cast<double>(SizeOf(dtype_));
  Whole(kGateNorm, config_.hidden_size * (4 + size));
  Multiply(kGateProduct, q_width, config_.hidden_size);
  Whole(kGate, static_cast<double>(q_width) * (4 + 2 * size));
  if (!config_.has_linear_layers()) return;
  Multiply(kLinearIn, linear.width(), config_.hidden_size);
  Whole(kDeltaGates, linear.num_v_heads * 24.0);
  Whole(kConv, linear.conv_width() * 8.0);
  Whole(kScaleHeads, linear.k_width() * 16.0);
  Whole(kDelta, linear.conv_width() * 8.0);
  slices_[kDelta].front().us += delta_tokens * kDeltaTokenUs;
  Whole(kGatedNorm, linear.v_width() * (8 + size));
}

void OperatorSlices::Whole(int op, double bytes_of_token) {
  slices_[op].assign(1, {0, num_tokens_, BytesUs(num_tokens_ * bytes_of_token)});
}

// A product of the layers, which the ranks share.
void OperatorSlices::Multiply(int op, int64_t n, int64_t k) {
  n = CeilDiv(n, num_ranks_);
  const double row_us =
      static_cast<double>(n) * static_cast<double>(k) / RateOf(matrices_, persistent_);
  const int32_t tile_rows = persistent_ ? kPersistentSliceRows : kSliceRows;
  const int32_t step = RowsOfSlice(num_tokens_, tile_rows, row_us, n, slice_us_);
  Cut(num_tokens_, step, row_us, &slices_[op]);
  // Few rows take the time of the weights.
  for (OperatorSlice& slice : slices_[op]) slice.us = ProductUs(slice.count, n, k);
}

// As many units in a slice as its time allows.
void OperatorSlices::CutUnits(int op, int32_t num_units, double unit_us) {
  const double fit = (slice_us_ - kLaunchUs) / unit_us;
  Cut(num_units, static_cast<int32_t>(std::clamp<double>(fit, 1, num_units)), unit_us,
      &slices_[op]);
}

// Each expert has its share of the rows, which the host does not know before they are computed. Few
// rows take the time of the weights; an expert without rows has none to read.
void OperatorSlices::MultiplyExperts(int op, int64_t n, int64_t k) {
  const double rows = double{1} * num_tokens_ * config_.experts_per_token / config_.num_experts;
  const double weights = static_cast<double>(CeilDiv(n, num_ranks_)) * static_cast<double>(k);
  const double expert_us =
      std::max(rows * weights / RateOf(matrices_, false),
               std::min(rows, 1.0) * weights * BytesOf(matrices_) / kBytesPerUs);
  CutUnits(op, config_.num_experts, expert_us);
}

void OperatorSlices::MultiplyTerms(int32_t table_rows) {
  const int32_t num_heads = 2 * config_.num_heads;
  Whole(kHeadRows, 2.0 * num_heads * config_.head_dim * static_cast<double>(SizeOf(dtype_)));
  const double head_us =
      double{1} * num_tokens_ * table_rows * config_.head_dim / RateOf(dtype_, false);
  CutUnits(kTerms, num_heads, head_us);
}

void OperatorSlices::Attend(const BatchWork& work, int32_t keys_before, int32_t keys_after,
                            std::vector<OperatorSlice>* slices) {
  const int32_t group = config_.num_heads / config_.num_kv_heads;
  const double products_of_key = 2.0 * config_.head_dim * config_.num_kv_heads / num_ranks_;
  slices->assign(1, {0, 0, kLaunchUs});
  const auto add = [&](const AttentionTile& tile, int32_t tile_rows, int32_t left_out) {
    const int32_t rows = std::min(tile_rows, tile.num_tokens * group - tile.first_row);
    const int32_t last = tile.begin + (tile.first_row + rows - 1) / group;
    const int32_t end = std::min(last + 1 + keys_after, tile.num_keys);
    const int32_t first =
        keys_before < 0 ? left_out : std::max(0, tile.begin + tile.first_row / group - keys_before);
    const double keys = rows > 0 ? std::max(end - first, 1) : 0;
    const double us = std::max(0, rows) * keys * products_of_key / AttentionRateOf(dtype_);
    if (slices->back().count > 0 && slices->back().us + us > slice_us_) {
      slices->push_back({slices->back().first + slices->back().count, 0, kLaunchUs});
    }
    ++slices->back().count;
    slices->back().us += us;
  };
  const bool shares = keys_before < 0 && !work.prefixes.empty();
  if (shares) {
    for (const AttentionTile& tile : work.prefixes) add(tile, work.prefix_rows, 0);
  }
  for (size_t i = 0; i < work.tiles.size(); ++i) {
    add(work.tiles[i], work.tile_rows, shares ? work.shared[i].num_keys : 0);
  }
}

}  // namespace skein::cuda
