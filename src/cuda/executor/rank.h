#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/kernels/args.h"
#include "model/config/config.h"

namespace skein::cuda {

// One of the devices that compute each operator together (tensor parallelism). Every product is cut
// by its columns, so that each device has a share of each weight matrix, and attention by its
// heads. Behind such an operator, every rank gets the columns of all others. So no sum is cut: an
// output is the same chain of terms on any number of devices, and has the same bits.
struct Rank {
  int32_t index = 0;
  int32_t count = 1;

  bool leads() const { return index == 0; }
};

// Columns of a product, which are rows of its weight matrix. `begin` is a multiple of kPanelCols.
struct ColumnRange {
  int32_t begin = 0, end = 0;

  int32_t size() const { return end - begin; }
};

// A rank's share of so many columns: whole panels; that of the last rank ends at `width`.
ColumnRange ColumnsOf(const Rank& rank, int32_t width);

// The config of a rank's share: its heads, and its columns of MLPs and experts.
ModelConfig ShareOf(const Rank& rank, const ModelConfig& config);

// kUnsupported, with the field, unless several devices can compute the layers of this model
// together; kInvalidArgument, with the field tp, unless so many can. Any model has one rank.
Status CheckRanks(const ModelConfig& config, int32_t count);

}  // namespace skein::cuda
