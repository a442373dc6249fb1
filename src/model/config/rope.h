#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace skein {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

// The rotary position embedding that a config states.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 0;                                                // >= 1; yarn: > 1
  double factor = 1;                                               // >= 1
  int32_t original_max_position = 0;                               // llama3, yarn; > 0
  double low_freq_factor = 1, high_freq_factor = 4;                // llama3; low < high
  double beta_fast = 32, beta_slow = 1;                            // yarn; > 0
  std::optional<double> attention_factor, mscale, mscale_all_dim;  // yarn
  bool truncate = true;                                            // yarn
};

// The rotation of a head: dimensions i and i + head_dim / 2 turn together by position *
// inv_freq[i]. cos and sin are multiplied by attention_factor.
struct RopeTable {
  std::vector<double> inv_freq;  // [head_dim / 2]
  double attention_factor = 1;
};

// Makes the frequencies of transformers' ROPE_INIT_FUNCTIONS, in double instead of float32.
// Sources: Su et al. 2021 (RoFormer) 3.2.2; linear: Chen et al. 2023; yarn: Peng et al. 2023, 3.2
// and 3.4; llama3: the Llama 3.1 release. REQUIRES: head_dim even and positive.
RopeTable MakeRopeTable(const RopeConfig& rope, int32_t head_dim);

}  // namespace skein
