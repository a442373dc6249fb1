#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "cuda/executor/operators/layer_op.h"
#include "cuda/kernels/args.h"
#include "model/config/config.h"

namespace skein::cuda {

// The part of an operator that a device runs at a time, and the time it takes, by estimate.
struct OperatorSlice {
  int32_t first = 0,
          count = 0;  // rows of a product, tiles of attention, experts, heads; others: rows
  double us = 0;
};

// A device runs an operator of a layer in slices, if it is long. A slice takes this time at most,
// by estimate, unless a single unit takes longer: the rows of a tile, a tile of attention or an
// expert. Slices of wide matrices take up to twice the time, if shorter ones would leave much of
// the device idle.
inline constexpr double kSliceUs = 750;
// The rows of a product's tile, and those of persistent blocks (gemm_persistent.h).
inline constexpr int32_t kSliceRows = 128;
inline constexpr int32_t kPersistentSliceRows = 256;

// The parts of a batch that its work follows from.
struct BatchWork {
  int32_t num_tokens = 0;
  std::span<const AttentionTile> tiles;
  int32_t tile_rows = 0;
  // The keys that a row sees on either side of its own in layers with a window, at most.
  int32_t locally_before = 0, locally_after = 0;
  int32_t delta_tokens = 0;  // that the delta rule takes one after the other
  // Walks of shared prefixes, which come first in layers without a window, and what they leave out
  // of each of `tiles`. Both are empty if there are none.
  std::span<const AttentionTile> prefixes = {};
  int32_t prefix_rows = 0;
  std::span<const SharedPrefix> shared = {};
};

// The slices of a model's operators for one batch:
//
//   product    | 1408 rows | 1408 rows | 640 |     as full as possible: a slice whose blocks do not
//   attention  | 61 tiles | 37 | 29 |               fill the device costs time
//   experts    | 40 | 40 | 40 | 8 |
//   others     | all rows |
//
// Each output has the same bits in every slice. Times follow from the numbers of multiplications
// and of bytes, at rates like those that an H200 has shown (docs/results/gpu.md).
class OperatorSlices {
 public:
  // `num_ranks`: the devices that share each product (rank.h). `dtype`: the compute type;
  // `matrices`: the type of the weights; `persistent`: whether the devices have persistent blocks.
  OperatorSlices(const ModelConfig& config, int32_t num_ranks, DType dtype, DType matrices,
                 bool persistent);

  // Computes the slices of a batch.
  void Assign(const BatchWork& work, double slice_us);
  // The slices of an operator: one at least. `local`: of a layer with a window.
  std::span<const OperatorSlice> Of(int op, bool local) const {
    return op == kAttention && local ? local_attention_ : slices_[op];
  }
  // The time of a product of rows with a matrix that one device has.
  double ProductUs(int64_t rows, int64_t n, int64_t k) const;
  // The time of an operator that reads or writes so many bytes.
  static double BytesUs(double bytes);
  // The time until another device has got so many bytes.
  static double LinkUs(double bytes);

 private:
  void Linear(int32_t delta_tokens);
  void Multiply(int op, int64_t n, int64_t k);
  void CutUnits(int op, int32_t num_units, double unit_us);
  void MultiplyExperts(int op, int64_t n, int64_t k);
  // The products of the heads of q and k with a table's rows.
  void MultiplyTerms(int32_t table_rows);
  void Whole(int op, double bytes_of_token);
  // The slices of layers in which a row sees so many keys on either side of its own.
  void Attend(const BatchWork& work, int32_t keys_before, int32_t keys_after,
              std::vector<OperatorSlice>* slices);

  const ModelConfig& config_;
  const int32_t num_ranks_;
  const DType dtype_;
  const DType matrices_;
  const bool persistent_;
  int32_t num_tokens_ = 0;
  double slice_us_ = 0;
  std::array<std::vector<OperatorSlice>, kLayerOps> slices_;
  std::vector<OperatorSlice> local_attention_;
};

}  // namespace skein::cuda
