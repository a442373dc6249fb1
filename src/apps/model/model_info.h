#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/host/model_traits.h"
#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// The facts that `skein model info` tells about a model directory.
struct ModelInfo {
  std::string dir;
  ModelConfig config;
  ModelUse use;
  // Keyed by the names of dtypes in the files.
  std::map<std::string, int64_t> weight_bytes_by_dtype;
  int64_t weight_bytes = 0;
  DType compute_dtype = DType::kBf16;  // of weights and KV cache under --dtype auto
  int64_t kv_bytes_per_token = 0;
  int64_t memory_bytes = 0;       // weights in compute_dtype, and KV cache for one full context
  int64_t int8_memory_bytes = 0;  // memory_bytes under --quantization int8
  bool has_tokenizer = false;
  bool has_chat_template = false;
  std::vector<std::string> problems;  // weights that are missing or of another shape
};

// Reads the config and the headers of the weights. Fails if these cannot be read at all.
Result<ModelInfo> DescribeModel(const std::string& dir);

nlohmann::ordered_json ToJson(const ModelInfo& info);
std::string ToText(const ModelInfo& info);  // a table for people, one fact per line

}  // namespace skein
