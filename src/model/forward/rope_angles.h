#pragma once

#include <cstdint>
#include <vector>

#include "base/threads/thread_team.h"
#include "model/config/config.h"

namespace skein {

// The cos and sin of every position's rotation, times the attention factor. They are computed in
// double and rounded once to f32. Immutable; shared by all passes.
class RopeAngles {
 public:
  // `team` computes the angles: a long context has tens of millions of them.
  RopeAngles(const RopeTable& table, int32_t num_positions, ThreadTeam& team);

  int32_t num_positions() const { return num_positions_; }
  // [head_dim / 2]
  const float* cos(int32_t position) const { return cos_.data() + size_t(position) * half_dim_; }
  const float* sin(int32_t position) const { return sin_.data() + size_t(position) * half_dim_; }
  size_t bytes() const { return (cos_.size() + sin_.size()) * sizeof(float); }

 private:
  int32_t num_positions_;
  size_t half_dim_;
  std::vector<float> cos_;  // [num_positions, head_dim / 2]
  std::vector<float> sin_;  // [num_positions, head_dim / 2]
};

}  // namespace skein
