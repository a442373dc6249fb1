#include "sim/device.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxFigure = 1e12;

Status FieldError(const char* field, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, fmt::format("{} must be {}", field, allowed), field};
}

// Reads a number. Leaves *value unchanged if the field is absent and not required.
Status ReadNumber(const Json& json, const char* field, bool required, double* value) {
  const auto found = json.find(field);
  if (found == json.end() && !required) return Status::Ok();
  const double number = found != json.end() && found->is_number() ? found->get<double>() : -1;
  if (!(number >= 0) || number > kMaxFigure || (required && number == 0)) {
    return FieldError(field, required ? "a number above 0" : "a number of at least 0");
  }
  *value = number;
  return Status::Ok();
}

Status ReadTable(const Json& json, const char* field, bool required,
                 DeviceDescription::Table* table) {
  const auto found = json.find(field);
  if (found == json.end() && !required) return Status::Ok();
  const Status error =
      FieldError(field, "a list of [rows, share of the peak], rows ascending, both above 0");
  if (found == json.end() || !found->is_array() || found->empty()) return error;
  for (const Json& pair : *found) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) {
      return error;
    }
    const auto rows = pair[0].get<double>();
    const auto share = pair[1].get<double>();
    if (!(rows > 0) || !(share > 0) || (!table->empty() && rows <= table->back().first)) {
      return error;
    }
    table->emplace_back(rows, share);
  }
  return Status::Ok();
}

Status ReadPeaks(const Json& json, std::map<std::string, double>* tflops) {
  const auto found = json.find("tflops");
  const Status error = FieldError("tflops", "an object of peaks above 0 by weight type");
  if (found == json.end() || !found->is_object() || found->empty()) return error;
  for (const auto& [type, peak] : found->items()) {
    if (WeightTypeBytes(type) == 0) {
      return FieldError("tflops", fmt::format("by bf16, fp8 or f32, not '{}'", type));
    }
    if (!peak.is_number() || !(peak.get<double>() > 0)) return error;
    (*tflops)[type] = peak.get<double>();
  }
  return Status::Ok();
}

}  // namespace

double WeightTypeBytes(const std::string& type) {
  if (type == "bf16") return 2;
  if (type == "fp8") return 1;
  if (type == "f32") return 4;
  return 0;
}

int64_t SimModelShape::num_layer_parameters() const {
  const int64_t attention =
      int64_t{hidden_size} * (q_width + kv_width) + int64_t{q_width} * hidden_size;
  const int64_t dense = int64_t{3} * hidden_size * intermediate_size;
  const int64_t shared = shared_expert_size > 0 ? 1 + int64_t{3} * shared_expert_size : 0;
  const int64_t experts = hidden_size * (num_experts * (1 + int64_t{3} * expert_size) + shared);
  return num_layers * attention + (num_layers - num_expert_layers) * dense +
         num_expert_layers * experts;
}

int64_t SimModelShape::mlp_width() const {
  const int64_t dense = num_expert_layers < num_layers ? int64_t{3} * intermediate_size : 0;
  // The input and output at each of a token's experts, and gate, up and their product.
  const int64_t experts = experts_per_token * (int64_t{2} * hidden_size + int64_t{3} * expert_size);
  return std::max({dense, experts, int64_t{3} * shared_expert_size});
}

int64_t SimModelShape::weight_bytes() const {
  const double layers = static_cast<double>(num_layer_parameters()) * WeightTypeBytes(weight_type);
  const int num_matrices = tie_embeddings ? 1 : 2;  // matrices with the vocabulary as a dimension
  return static_cast<int64_t>(layers) + int64_t{2} * num_matrices * vocab_size * hidden_size;
}

Result<DeviceDescription> ParseDevice(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(StatusCode::kInvalidArgument, "is not a JSON object");
  DeviceDescription device;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return FieldError("name", "a string");
  device.name = name->get<std::string>();
  if (const auto source = json.find("source"); source != json.end() && source->is_string()) {
    device.source = source->get<std::string>();
  }
  double memory_gb = 0;
  SKEIN_RETURN_IF_ERROR(ReadPeaks(json, &device.tflops));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "bandwidth_gbps", true, &device.bandwidth_gbps));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "memory_gb", true, &memory_gb));
  SKEIN_RETURN_IF_ERROR(
      ReadNumber(json, "bandwidth_efficiency", false, &device.bandwidth_efficiency));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "cache_mb", false, &device.cache_mb));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "launch_us", false, &device.launch_us));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "step_us", false, &device.step_us));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "row_us", false, &device.row_us));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "request_us", false, &device.request_us));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "link_gbps", false, &device.link_gbps));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "link_us", false, &device.link_us));
  SKEIN_RETURN_IF_ERROR(ReadNumber(json, "host_gbps", false, &device.host_gbps));
  SKEIN_RETURN_IF_ERROR(ReadTable(json, "matmul_efficiency", true, &device.matmul_efficiency));
  SKEIN_RETURN_IF_ERROR(
      ReadTable(json, "attention_efficiency", true, &device.attention_efficiency));
  if (device.bandwidth_efficiency == 0) {
    return FieldError("bandwidth_efficiency", "a number above 0");
  }
  device.memory_bytes = static_cast<int64_t>(memory_gb * 1e9);
  return device;
}

Result<DeviceDescription> LoadDevice(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, "device " + path + " cannot be opened", "device");
  std::ostringstream text;
  text << file.rdbuf();
  auto device = ParseDevice(text.str());
  if (device.ok()) return device;
  return Status(device.status().code(), path + ": " + device.status().message(),
                device.status().param());
}

std::string DeviceToJson(const DeviceDescription& device) {
  Json json;
  json["name"] = device.name;
  json["source"] = device.source;
  json["tflops"] = device.tflops;
  json["bandwidth_gbps"] = device.bandwidth_gbps;
  json["bandwidth_efficiency"] = device.bandwidth_efficiency;
  json["memory_gb"] = static_cast<double>(device.memory_bytes) / 1e9;
  json["cache_mb"] = device.cache_mb;
  json["launch_us"] = device.launch_us;
  json["step_us"] = device.step_us;
  json["row_us"] = device.row_us;
  json["request_us"] = device.request_us;
  json["matmul_efficiency"] = device.matmul_efficiency;
  json["attention_efficiency"] = device.attention_efficiency;
  json["link_gbps"] = device.link_gbps;
  json["link_us"] = device.link_us;
  json["host_gbps"] = device.host_gbps;
  return json.dump(2) + "\n";
}

double EfficiencyAt(const DeviceDescription::Table& table, double rows) {
  SKEIN_CHECK(!table.empty() && rows > 0);
  if (rows <= table.front().first) return table.front().second;
  for (size_t i = 1; i < table.size(); ++i) {
    const auto& [low, low_share] = table[i - 1];
    const auto& [high, high_share] = table[i];
    if (rows > high) continue;
    const double place = std::log(rows / low) / std::log(high / low);
    return low_share + place * (high_share - low_share);
  }
  return table.back().second;
}

}  // namespace skein
