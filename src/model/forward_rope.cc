#include "model/forward_rope.h"

#include <cmath>

#include "base/check.h"

namespace skein {

RopeAngles::RopeAngles(const RopeTable& table, int32_t num_positions)
    : num_positions_(num_positions), half_dim_(table.inv_freq.size()) {
  SKEIN_CHECK(num_positions > 0 && half_dim_ > 0);
  cos_.reserve(num_positions * half_dim_);
  sin_.reserve(num_positions * half_dim_);
  for (int32_t position = 0; position < num_positions; ++position) {
    for (const double frequency : table.inv_freq) {
      const double angle = position * frequency;
      cos_.push_back(static_cast<float>(std::cos(angle) * table.attention_factor));
      sin_.push_back(static_cast<float>(std::sin(angle) * table.attention_factor));
    }
  }
}

}  // namespace skein
