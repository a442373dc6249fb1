#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace skein {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn, kLong };

// The rotary position embedding that a config states.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 0;                                                // >= 1; yarn: > 1
  double factor = 1;                                               // >= 1
  int32_t original_max_position = 0;                               // all but linear; > 0
  double low_freq_factor = 1, high_freq_factor = 4;                // llama3; low < high
  double beta_fast = 32, beta_slow = 1;                            // yarn; > 0
  std::optional<double> attention_factor, mscale, mscale_all_dim;  // yarn; longrope: the first
  bool truncate = true;                                            // yarn
  double rotated_part = 1;  // of each head, from its first element on; in (0, 1]
  // longrope: divisors of the frequencies, [rotary_dim / 2], for contexts up to the original one
  // and for longer ones.
  std::vector<double> short_factors, long_factors;
};

// Elements of a head that are rotated, as transformers rounds it.
inline int32_t RotaryDim(const RopeConfig& rope, int32_t head_dim) {
  return static_cast<int32_t>(head_dim * rope.rotated_part);
}

// The rotation of a head: dimensions i and i + rotary_dim / 2 turn together by position *
// inv_freq[i]. cos and sin are multiplied by attention_factor.
struct RopeTable {
  std::vector<double> inv_freq;  // [rotary_dim / 2]
  double attention_factor = 1;
};

// Makes the frequencies of transformers' ROPE_INIT_FUNCTIONS, in double instead of float32.
// Sources: Su et al. 2021 (RoFormer) 3.2.2; linear: Chen et al. 2023; yarn: Peng et al. 2023, 3.2
// and 3.4; llama3: the Llama 3.1 release; longrope: Ding et al. 2024. `num_positions`: the context
// that is served, by which longrope chooses its divisors, so that a key's rotation does not depend
// on the keys behind it. REQUIRES: the rotated part of head_dim is even and positive.
RopeTable MakeRopeTable(const RopeConfig& rope, int32_t head_dim, int32_t num_positions = 0);

}  // namespace skein
