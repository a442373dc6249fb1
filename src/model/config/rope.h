#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace skein {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn, kLong };

// The rotary position embedding, as a config states it.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 0;                                                // >= 1; with yarn > 1
  double factor = 1;                                               // >= 1
  int32_t original_max_position = 0;                               // > 0; unused by linear
  double low_freq_factor = 1, high_freq_factor = 4;                // llama3; low < high
  double beta_fast = 32, beta_slow = 1;                            // yarn; > 0
  std::optional<double> attention_factor, mscale, mscale_all_dim;  // yarn; longrope: the first
  bool truncate = true;                                            // yarn
  double rotated_part = 1;  // of each head, from its first element on; in (0, 1]
  // For longrope: divisors of the frequencies, [rotary_dim / 2]. short_factors is used for contexts
  // up to the original one, long_factors for longer contexts.
  std::vector<double> short_factors, long_factors;
};

// The number of elements of a head that are rotated, rounded as in transformers.
inline int32_t RotaryDim(const RopeConfig& rope, int32_t head_dim) {
  return static_cast<int32_t>(head_dim * rope.rotated_part);
}

// The rotation of a head: elements i and i + rotary_dim / 2 turn together by
// position * inv_freq[i]. cos and sin are multiplied by attention_factor.
struct RopeTable {
  std::vector<double> inv_freq;  // [rotary_dim / 2]
  double attention_factor = 1;
};

// Makes the frequencies of transformers' ROPE_INIT_FUNCTIONS, in double instead of float32.
// Sources: Su et al. 2021 (RoFormer) 3.2.2; linear: Chen et al. 2023; yarn: Peng et al. 2023, 3.2
// and 3.4; llama3: the Llama 3.1 release; longrope: Ding et al. 2024. `num_positions`: the context
// that is served. longrope chooses its divisors by it, so that a key's rotation does not depend on
// the keys behind that key. REQUIRES: the rotated part of head_dim is even and positive.
RopeTable MakeRopeTable(const RopeConfig& rope, int32_t head_dim, int32_t num_positions = 0);

}  // namespace skein
