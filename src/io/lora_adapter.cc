#include "io/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "io/json_file.h"

namespace skein {
namespace {

constexpr int64_t kMaxRank = 65536;
constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kSuffixA = ".lora_A.weight", kSuffixB = ".lora_B.weight";

std::vector<float> ToFloats(const TensorView& view) {
  std::vector<float> values(view.bytes / SizeOf(view.dtype));
  Widen(view.data, view.dtype, std::ssize(values), values.data());
  return values;
}

// Refuses members that change more of the model than the pairs do. Each of them has a value that
// turns it off.
Status CheckPlain(const JsonObject& config) {
  const auto unsupported = [&](const char* key) {
    return Status(StatusCode::kUnsupported,
                  config.Error(key, "requests an unsupported feature").message());
  };
  for (const char* key : {"use_dora", "fan_in_fan_out", "lora_bias"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto flag, config.Bool(key));
    if (flag.value_or(false)) return unsupported(key);
  }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto pattern, config.Object(key));
    if (pattern && pattern->members().size() > 0) return unsupported(key);
  }
  for (const char* key : {"modules_to_save", "trainable_token_indices", "target_parameters"}) {
    if (config.Has(key)) return unsupported(key);
  }
  SKEIN_ASSIGN_OR_RETURN(const auto bias, config.String("bias"));
  if (bias.value_or("none") != "none") return unsupported("bias");
  SKEIN_ASSIGN_OR_RETURN(const auto type, config.String("peft_type"));
  return type.value_or("LORA") == "LORA" ? Status::Ok() : unsupported("peft_type");
}

// Returns "q_proj" for "model.layers.0.self_attn.q_proj.weight".
std::string_view ModuleOf(std::string_view weight) {
  const std::string_view module = weight.substr(0, weight.rfind('.'));
  const size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? module : module.substr(dot + 1);
}

}  // namespace

Result<LoraAdapter> LoraAdapter::Open(const std::string& dir) {
  LoraAdapter adapter;
  SKEIN_RETURN_IF_ERROR(adapter.ReadConfig(dir + "/adapter_config.json"));
  const std::string path = dir + "/adapter_model.safetensors";
  SKEIN_RETURN_IF_ERROR(adapter.ReadTensors(path));
  SKEIN_RETURN_IF_ERROR(adapter.CheckPairs(path));
  return adapter;
}

Status LoraAdapter::ReadConfig(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(path));
  const JsonObject& config = file.root();
  SKEIN_RETURN_IF_ERROR(CheckPlain(config));
  SKEIN_ASSIGN_OR_RETURN(const auto rank, config.Int("r"));
  if (!rank || *rank < 1 || *rank > kMaxRank) {
    return config.Error("r", "must be an integer in [1, " + std::to_string(kMaxRank) + "]");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto alpha, config.Double("lora_alpha"));
  if (!alpha || !std::isfinite(*alpha)) return config.Error("lora_alpha", "must be a number");
  SKEIN_ASSIGN_OR_RETURN(const auto rank_stabilized, config.Bool("use_rslora"));
  const auto divisor = static_cast<double>(*rank);
  rank_ = *rank;
  scale_ =
      static_cast<float>(*alpha / (rank_stabilized.value_or(false) ? std::sqrt(divisor) : divisor));
  SKEIN_ASSIGN_OR_RETURN(auto modules, config.Strings("target_modules"));
  if (!modules || modules->empty()) {
    return config.Error("target_modules", "must be a list of module names");
  }
  target_modules_ = *std::move(modules);
  SKEIN_ASSIGN_OR_RETURN(decision_temperature_, config.Double("decision_temperature"));
  if (decision_temperature_ && !(*decision_temperature_ > 0 && *decision_temperature_ <= 100)) {
    return config.Error("decision_temperature", "must be above 0 and at most 100");
  }
  return Status::Ok();
}

Status LoraAdapter::ReadTensors(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  for (const auto& entry : file.header().tensors) {
    const std::string& name = entry.first;
    const auto error = [&](const std::string& problem) {
      return Status(StatusCode::kInvalidArgument, path + ": tensor '" + name + "' " + problem);
    };
    const bool is_a = name.ends_with(kSuffixA);
    if (!name.starts_with(kPrefix) || (!is_a && !name.ends_with(kSuffixB))) {
      return error("is no LoRA matrix of a module: names are base_model.model.<module>" +
                   std::string(kSuffixA) + " and " + std::string(kSuffixB));
    }
    const std::string weight =
        name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffixA.size()) + ".weight";
    const std::string_view module = ModuleOf(weight);
    const bool targeted = std::ranges::any_of(target_modules_, [&](const std::string& target) {
      return target == module || weight == target + ".weight";
    });
    if (!targeted) return error("belongs to none of target_modules");
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, file.Find(name));
    if (view.shape.size() != 2 || view.shape[is_a ? 0 : 1] != rank_) {
      return error("has shape " + ShapeString(view.shape) + "; r is " + std::to_string(rank_));
    }
    LoraChange& pair = pairs_[weight];
    (is_a ? pair.num_inputs : pair.num_outputs) = view.shape[is_a ? 1 : 0];
    (is_a ? pair.a : pair.b) = ToFloats(view);
  }
  return Status::Ok();
}

Status LoraAdapter::CheckPairs(const std::string& path) const {
  for (const auto& [weight, pair] : pairs_) {
    if (pair.a.empty() || pair.b.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": '" + weight + "' has no " + (pair.a.empty() ? "lora_A" : "lora_B"));
    }
  }
  for (const std::string& target : target_modules_) {
    const bool found = std::ranges::any_of(pairs_, [&](const auto& entry) {
      return ModuleOf(entry.first) == target || entry.first == target + ".weight";
    });
    if (!found) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": no tensor belongs to the target module '" + target + "'");
    }
  }
  return Status::Ok();
}

const LoraChange* LoraAdapter::Find(std::string_view weight) const {
  const auto found = pairs_.find(weight);
  return found == pairs_.end() ? nullptr : &found->second;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> LoraAdapter::Weights() const {
  std::vector<std::pair<std::string, std::vector<int64_t>>> weights;
  for (const auto& [weight, pair] : pairs_) {
    weights.push_back({weight, {pair.num_outputs, pair.num_inputs}});
  }
  return weights;
}

void LoraAdapter::AddTo(std::string_view weight, int64_t first_row, int64_t num_rows,
                        float* rows) const {
  const LoraChange* const found = Find(weight);
  SKEIN_CHECK(found != nullptr);
  const LoraChange& pair = *found;
  SKEIN_CHECK(first_row >= 0 && num_rows >= 0 && num_rows <= pair.num_outputs - first_row);
  std::vector<float> change(static_cast<size_t>(pair.num_inputs));
  for (int64_t row = 0; row < num_rows; ++row) {
    std::ranges::fill(change, 0.0f);
    const float* b = pair.b.data() + (first_row + row) * rank_;
    for (int64_t k = 0; k < rank_; ++k) {
      const float* a = pair.a.data() + k * pair.num_inputs;
      for (int64_t i = 0; i < pair.num_inputs; ++i) change[i] += b[k] * a[i];
    }
    float* out = rows + row * pair.num_inputs;
    for (int64_t i = 0; i < pair.num_inputs; ++i) out[i] += scale_ * change[i];
  }
}

}  // namespace skein
