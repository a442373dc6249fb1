#include "model/config/rope_config.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/config/config_fields.h"

namespace skein {
namespace {

// Above the theta of any model, and low enough that every frequency is a normal number.
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr double kMinFactor = 1e-6;

// Reads a required number in [min, max].
Status ReadNumber(const JsonObject& object, const char* key, double min, double max, double* out) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<double> value, object.Double(key));
  if (!value) return object.Error(key, "is missing");
  if (!(*value >= min && *value <= max)) {
    std::ostringstream problem;
    problem << "is " << *value << "; must be in [" << min << ", " << max << "]";
    return object.Error(key, problem.str());
  }
  *out = *value;
  return Status::Ok();
}

// Reads an optional number. If it is absent or zero, *out keeps its default.
Status ReadBeta(const JsonObject& object, const char* key, double* out) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<double> value, object.Double(key));
  if (!value || *value == 0) return Status::Ok();
  return ReadNumber(object, key, kMinFactor, kMaxFactor, out);
}

Result<RopeType> ReadType(const JsonObject& object, bool has_longrope) {
  SKEIN_ASSIGN_OR_RETURN(const std::optional<std::string> type, object.String("rope_type"));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<std::string> old_type, object.String("type"));
  if (!type && !old_type) return object.Error("rope_type", "is missing");
  if (type && old_type && *type != *old_type) {
    return object.Error("rope_type", "is '" + *type + "' but 'type' is '" + *old_type + "'");
  }
  const std::string name = type ? *type : *old_type;
  if (name == "default") return RopeType::kDefault;
  if (name == "linear") return RopeType::kLinear;
  if (name == "llama3") return RopeType::kLlama3;
  if (name == "yarn") return RopeType::kYarn;
  if (name == "longrope" && has_longrope) return RopeType::kLong;
  return Unsupported(object, "rope_type",
                     "is '" + name +
                         "'; supported are default, linear, llama3, yarn and, in Phi-3, "
                         "longrope");
}

Status ReadOriginalMaxPosition(const JsonObject& object, std::optional<int32_t> fallback,
                               int32_t* out) {
  constexpr const char* kKey = "original_max_position_embeddings";
  SKEIN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, object.Int(kKey));
  if (!value && !fallback) return object.Error(kKey, "is missing");
  const int64_t position = value ? *value : *fallback;
  if (position <= 0 || position > INT32_MAX) {
    return object.Error(kKey, "is " + std::to_string(position) + "; must be in [1, 2^31)");
  }
  *out = static_cast<int32_t>(position);
  return Status::Ok();
}

Status ReadLlama3(const JsonObject& object, RopeConfig* rope) {
  SKEIN_RETURN_IF_ERROR(
      ReadNumber(object, "low_freq_factor", kMinFactor, kMaxFactor, &rope->low_freq_factor));
  SKEIN_RETURN_IF_ERROR(
      ReadNumber(object, "high_freq_factor", kMinFactor, kMaxFactor, &rope->high_freq_factor));
  if (rope->high_freq_factor <= rope->low_freq_factor) {
    return object.Error("high_freq_factor", "must be larger than 'low_freq_factor'");
  }
  return ReadOriginalMaxPosition(object, std::nullopt, &rope->original_max_position);
}

Status ReadYarn(const JsonObject& object, int32_t max_position, RopeConfig* rope) {
  SKEIN_RETURN_IF_ERROR(ReadBeta(object, "beta_fast", &rope->beta_fast));
  SKEIN_RETURN_IF_ERROR(ReadBeta(object, "beta_slow", &rope->beta_slow));
  if (rope->beta_fast < rope->beta_slow) {
    return object.Error("beta_fast", "must be at least 'beta_slow'");
  }
  SKEIN_ASSIGN_OR_RETURN(rope->attention_factor, object.Double("attention_factor"));
  SKEIN_ASSIGN_OR_RETURN(rope->mscale, object.Double("mscale"));
  SKEIN_ASSIGN_OR_RETURN(rope->mscale_all_dim, object.Double("mscale_all_dim"));
  for (const auto& [key, value] :
       {std::pair("attention_factor", rope->attention_factor), std::pair("mscale", rope->mscale),
        std::pair("mscale_all_dim", rope->mscale_all_dim)}) {
    if (value && !(*value >= 0 && *value <= kMaxFactor)) {
      return object.Error(key, "must be in [0, 1e6]");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(const std::optional<bool> truncate, object.Bool("truncate"));
  rope->truncate = truncate.value_or(true);
  if (rope->theta <= 1) return object.Error("rope_theta", "must be > 1 with yarn");
  return ReadOriginalMaxPosition(object, max_position, &rope->original_max_position);
}

// Theta is in config.json itself or in rope_parameters. If it is in both, the values must agree.
Status ReadTheta(const JsonObject& config, const std::optional<JsonObject>& parameters,
                 const RopeRules& rules, double* theta) {
  const bool inside = parameters && parameters->Has("rope_theta");
  const bool outside = config.Has("rope_theta");
  if (!inside && !outside) {
    *theta = rules.theta;
    if (rules.theta > 0) return Status::Ok();
    return config.Error("rope_theta",
                        "is missing, and so is 'rope_parameters': the base of the rotary embedding "
                        "is not guessed for this model_type");
  }
  double inner = 0, outer = 0;
  if (inside) SKEIN_RETURN_IF_ERROR(ReadNumber(*parameters, "rope_theta", 1, kMaxTheta, &inner));
  if (outside) SKEIN_RETURN_IF_ERROR(ReadNumber(config, "rope_theta", 1, kMaxTheta, &outer));
  if (inside && outside && inner != outer) {
    return config.Error("rope_theta", "is " + std::to_string(outer) +
                                          " but 'rope_parameters' says " + std::to_string(inner));
  }
  *theta = inside ? inner : outer;
  return Status::Ok();
}

// Reads which part of a head is rotated. It must be an even number of elements.
Status ReadRotatedPart(const JsonObject& object, const RopeRules& rules, RopeConfig* rope) {
  constexpr char kKey[] = "partial_rotary_factor";
  SKEIN_ASSIGN_OR_RETURN(const std::optional<double> partial, object.Double(kKey));
  if (!partial) return Status::Ok();
  if (*partial == 1.0) {
    rope->rotated_part = 1;
    return Status::Ok();
  }
  if (rules.head_dim == 0) {
    return Unsupported(object, kKey, "is " + std::to_string(*partial) + "; only 1 is supported");
  }
  rope->rotated_part = *partial;
  const bool in_range = *partial > 0 && *partial <= 1;
  const int32_t rotary_dim = in_range ? RotaryDim(*rope, rules.head_dim) : 0;
  if (rotary_dim > 0 && rotary_dim % 2 == 0) return Status::Ok();
  return object.Error(kKey, "is " + std::to_string(*partial) + "; it must rotate an even part of " +
                                std::to_string(rules.head_dim) + " elements");
}

// Checks the family's own part, which is used if the config states none.
Status CheckRotatedPart(const JsonObject& config, const RopeRules& rules, const RopeConfig& rope) {
  if (rules.head_dim == 0) return Status::Ok();
  const int32_t rotary_dim = RotaryDim(rope, rules.head_dim);
  if (rotary_dim > 0 && rotary_dim % 2 == 0) return Status::Ok();
  return config.Error(
      "head_dim", "is " + std::to_string(rules.head_dim) + ", of which no even part is rotated");
}

// The original context is stated beside the scaling. The stretched context is that of the config.
Status ReadLong(const JsonObject& config, const JsonObject& object, int32_t max_position,
                const RopeRules& rules, RopeConfig* rope) {
  const bool beside = config.Has("original_max_position_embeddings");
  SKEIN_RETURN_IF_ERROR(ReadOriginalMaxPosition(beside ? config : object, max_position,
                                                &rope->original_max_position));
  if (rope->original_max_position < 2) {
    return config.Error("original_max_position_embeddings", "must be above 1 with longrope");
  }
  rope->factor = double(max_position) / rope->original_max_position;
  if (object.Has("factor")) {
    SKEIN_RETURN_IF_ERROR(ReadNumber(object, "factor", 1, kMaxFactor, &rope->factor));
  }
  if (object.Has("attention_factor")) {
    double factor = 0;
    SKEIN_RETURN_IF_ERROR(ReadNumber(object, "attention_factor", 0, kMaxFactor, &factor));
    rope->attention_factor = factor;
  }
  const auto size = static_cast<size_t>(RotaryDim(*rope, rules.head_dim) / 2);
  for (const auto& [key, factors] : {std::pair("short_factor", &rope->short_factors),
                                     std::pair("long_factor", &rope->long_factors)}) {
    SKEIN_ASSIGN_OR_RETURN(auto read, object.Doubles(key));
    if (!read) return object.Error(key, "is missing");
    const bool usable = std::ranges::all_of(
        *read, [](double factor) { return factor >= kMinFactor && factor <= kMaxFactor; });
    if (read->size() != size || !usable) {
      return object.Error(key, "must hold " + std::to_string(size) + " numbers in [1e-6, 1e6]");
    }
    *factors = *std::move(read);
  }
  return Status::Ok();
}

// Reads the type of a rope whose theta is known, and the numbers of that type.
Status ReadScaling(const JsonObject& config, const JsonObject& object, int32_t max_position,
                   const RopeRules& rules, RopeConfig* rope) {
  SKEIN_ASSIGN_OR_RETURN(rope->type, ReadType(object, rules.head_dim > 0));
  if (rope->type == RopeType::kLong) return ReadLong(config, object, max_position, rules, rope);
  if (rope->type != RopeType::kDefault) {
    SKEIN_RETURN_IF_ERROR(ReadNumber(object, "factor", 1, kMaxFactor, &rope->factor));
  }
  if (rope->type == RopeType::kLlama3) return ReadLlama3(object, rope);
  if (rope->type == RopeType::kYarn) return ReadYarn(object, max_position, rope);
  return Status::Ok();
}

// rope_parameters may contain only theta. A rope_scaling without a type is an error.
bool HoldsThetaAlone(const JsonObject& parameters) {
  return !parameters.Has("rope_type") && !parameters.Has("type") && !parameters.Has("factor");
}

}  // namespace

Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position,
                                  const RopeRules& rules) {
  SKEIN_ASSIGN_OR_RETURN(std::optional<JsonObject> scaling, config.Object("rope_scaling"));
  if (scaling && scaling->empty()) scaling.reset();
  SKEIN_ASSIGN_OR_RETURN(const std::optional<JsonObject> parameters,
                         config.Object("rope_parameters"));
  if (scaling && parameters) {
    return config.Error("rope_scaling", "and 'rope_parameters' are both there; keep one");
  }
  RopeConfig rope;
  rope.rotated_part = rules.rotated_part;
  SKEIN_RETURN_IF_ERROR(ReadTheta(config, parameters, rules, &rope.theta));
  const std::optional<JsonObject>& object = parameters ? parameters : scaling;
  SKEIN_RETURN_IF_ERROR(ReadRotatedPart(config, rules, &rope));
  if (object) SKEIN_RETURN_IF_ERROR(ReadRotatedPart(*object, rules, &rope));
  SKEIN_RETURN_IF_ERROR(CheckRotatedPart(config, rules, rope));
  if (!object) return rope;
  if (parameters && HoldsThetaAlone(*object)) return rope;
  SKEIN_RETURN_IF_ERROR(ReadScaling(config, *object, max_position, rules, &rope));
  return rope;
}

Result<RopeConfig> ReadRopeParameters(const JsonObject& parameters, int32_t max_position) {
  SKEIN_ASSIGN_OR_RETURN(RopeConfig rope, ReadPlainRope(parameters, "rope_theta"));
  SKEIN_RETURN_IF_ERROR(ReadRotatedPart(parameters, {}, &rope));
  if (HoldsThetaAlone(parameters)) return rope;
  SKEIN_RETURN_IF_ERROR(ReadScaling(parameters, parameters, max_position, {}, &rope));
  return rope;
}

Result<RopeConfig> ReadPlainRope(const JsonObject& config, const char* key) {
  RopeConfig rope;
  SKEIN_RETURN_IF_ERROR(ReadNumber(config, key, 1, kMaxTheta, &rope.theta));
  return rope;
}

}  // namespace skein
