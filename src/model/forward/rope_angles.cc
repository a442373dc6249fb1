#include "model/forward/rope_angles.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {

RopeAngles::RopeAngles(const RopeTable& table, int32_t num_positions, ThreadTeam& team)
    : num_positions_(num_positions), half_dim_(table.inv_freq.size()) {
  constexpr int32_t kPositionsPerTicket = 1024;
  SKEIN_CHECK(num_positions > 0 && half_dim_ > 0);
  cos_.resize(num_positions * half_dim_);
  sin_.resize(num_positions * half_dim_);
  const auto fill = [&](int ticket, int) {
    const int32_t begin = ticket * kPositionsPerTicket;
    const int32_t end = begin + std::min(kPositionsPerTicket, num_positions - begin);
    size_t out = begin * half_dim_;
    for (int32_t position = begin; position < end; ++position) {
      for (const double frequency : table.inv_freq) {
        const double angle = position * frequency;
        cos_[out] = static_cast<float>(std::cos(angle) * table.attention_factor);
        sin_[out++] = static_cast<float>(std::sin(angle) * table.attention_factor);
      }
    }
  };
  team.Run(0, (num_positions - 1) / kPositionsPerTicket + 1, fill);
}

}  // namespace skein
