#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skein {

// The speed of a device. The `efficiency` tables give the share of the peak that a product with a
// number of rows reaches, interpolated over the logarithm of the rows.
struct DeviceDescription {
  using Table = std::vector<std::pair<double, double>>;  // (rows, share), rows ascending

  std::string name;
  std::string source;                    // the source of the figures
  std::map<std::string, double> tflops;  // peak, by weight type: "bf16", "fp8", "f32"
  double bandwidth_gbps = 0;             // memory bandwidth
  double bandwidth_efficiency = 1;
  int64_t memory_bytes = 0;
  double cache_mb = 0;      // size of the last-level cache, in 10^6 bytes; see KvReading::kCached
  double launch_us = 0;     // for each operator
  double step_us = 0;       // for each step
  double row_us = 0;        // for each row of a step
  double request_us = 0;    // from a client's request to the engine and back, without the steps
  Table matmul_efficiency;  // [tokens in the step]
  // [rows of the product]. A prefill row has as many rows as tokens; its query heads are multiplied
  // one by one. A decode row has as many rows as query heads that share a KV head.
  Table attention_efficiency;
  double link_gbps = 0;  // between devices, in each direction; 0: there is no link
  double link_us = 0;    // latency of a message, and of an all-reduce
  double host_gbps = 0;  // to and from the host's memory, in each direction; 0: there is no link
};

// Reads a description from JSON with the members above. `name`, `tflops`, `bandwidth_gbps`,
// `memory_gb` and `matmul_efficiency` are required. Errors name the member.
Result<DeviceDescription> ParseDevice(const std::string& json);
Result<DeviceDescription> LoadDevice(const std::string& path);
std::string DeviceToJson(const DeviceDescription& device);

// The share at `rows`. Beyond the ends of the table, the share is that of the nearest end.
double EfficiencyAt(const DeviceDescription::Table& table, double rows);

// The properties of a model that determine the cost of a decoder's step.
struct SimModelShape {
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t vocab_size = 0;
  int32_t head_dim = 0;
  int32_t q_width = 0;   // heads * head_dim
  int32_t kv_width = 0;  // K and V heads together * head_dim
  bool tie_embeddings = false;
  int32_t max_position = 0;
  // Mixture of experts: in `num_expert_layers` of the layers, each token goes through a few of many
  // MLPs.
  int32_t num_expert_layers = 0;
  int32_t num_experts = 0;
  int32_t experts_per_token = 0;
  int32_t expert_size = 0;
  int32_t shared_expert_size = 0;    // of the MLP of every token; 0: none
  std::string weight_type = "bf16";  // type of the layers' matrices; KV and activations are 16 bit

  // The number of query heads that share a KV head. (kv_width counts two heads for each KV head,
  // K's and V's.)
  double queries_per_kv_head() const { return 2.0 * q_width / kv_width; }
  int64_t num_layer_parameters() const;
  // The elements of a token's widest activations in an MLP, including those of its experts.
  int64_t mlp_width() const;
  int64_t weight_bytes() const;  // including embeddings and output matrix, in 16 bit
  int64_t kv_bytes_per_token() const { return int64_t{2} * kv_width * num_layers; }
};
// The bytes of one weight; 0 for an unknown type.
double WeightTypeBytes(const std::string& type);

}  // namespace skein
