#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/safetensors.h"

namespace skein {

// The change of one weight [num_outputs, num_inputs] by an adapter: scale * b · a.
struct LoraChange {
  std::vector<float> a;  // [rank, num_inputs]
  std::vector<float> b;  // [num_outputs, rank]
  int64_t num_inputs = 0, num_outputs = 0;
};

// A LoRA adapter as PEFT writes it: adapter_config.json and adapter_model.safetensors. It changes
// matrix W [out, in] to W + scale * B A, with A [rank, in] and B [out, rank]; the scale is
// lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora (Hu et al., "LoRA", section 4.1).
class LoraAdapter {
 public:
  // Fails with kNotFound if a file is absent. Fails with kUnsupported, naming the member, if the
  // config changes more than matrices (DoRA, biases, ranks by pattern, whole modules). Fails with
  // kInvalidArgument, naming it, for a tensor that is not one of a pair, or a target module without
  // a tensor.
  static Result<LoraAdapter> Open(const std::string& dir);

  // The names of the changed weights in the model ("model.layers.0.self_attn.q_proj.weight"), with
  // their shapes [out, in].
  std::vector<std::pair<std::string, std::vector<int64_t>>> Weights() const;
  // The change of a weight; null if the adapter does not change it.
  const LoraChange* Find(std::string_view weight) const;
  int64_t rank() const { return rank_; }
  float scale() const { return scale_; }

  // Adds the change to rows
  // [first_row, first_row + num_rows) of a weight; `rows` is [num_rows, in]. The change is computed
  // in f32: the sum over the rank is finished before it is added. REQUIRES: Find(weight) is not
  // null, and the rows exist.
  void AddTo(std::string_view weight, int64_t first_row, int64_t num_rows, float* rows) const;

  // `decision_temperature` of adapter_config.json, which calibrates the changed model.
  const std::optional<double>& decision_temperature() const { return decision_temperature_; }

 private:
  LoraAdapter() = default;
  Status ReadConfig(const std::string& path);
  Status ReadTensors(const std::string& path);
  Status CheckPairs(const std::string& path) const;

  int64_t rank_ = 0;
  float scale_ = 0;
  std::vector<std::string> target_modules_;
  std::optional<double> decision_temperature_;
  std::map<std::string, LoraChange, std::less<>> pairs_;  // keyed by weight
};

}  // namespace skein
