#pragma once

#include <cstdint>
#include <vector>

#include "model/config/config.h"

namespace skein {

// The rows of RelativeAttention's table by the distance of a query from a key.
class RelativeRows {
 public:
  // Distances are below num_positions on either side.
  RelativeRows(const RelativeAttention& relative, int32_t num_positions);

  // Row Of(d) belongs to the distance d.
  int32_t Of(int32_t distance) const { return rows_[distance + num_positions_ - 1]; }

 private:
  const int32_t num_positions_;
  std::vector<int32_t> rows_;
};

}  // namespace skein
