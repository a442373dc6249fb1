#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/host/model_traits.h"
#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// The contents of `skein model info` about a model directory.
struct ModelInfo {
  std::string dir;
  ModelConfig config;
  ModelUse use;
  std::map<std::string, int64_t> weight_bytes_by_dtype;  // as the files spell the dtypes
  int64_t weight_bytes = 0;
  DType compute_dtype = DType::kBf16;  // of weights and KV cache under --dtype auto
  int64_t kv_bytes_per_token = 0;
  int64_t memory_bytes = 0;       // weights in compute_dtype and the KV of one full context
  int64_t int8_memory_bytes = 0;  // the same under --quantization int8; 0 for an encoder
  bool has_tokenizer = false;
  bool has_chat_template = false;
  std::vector<std::string> problems;  // weights that are missing or of another shape
};

// Reads configs and weight headers; fails if these cannot be read at all.
Result<ModelInfo> DescribeModel(const std::string& dir);

nlohmann::ordered_json ToJson(const ModelInfo& info);
std::string ToText(const ModelInfo& info);  // a table for people, one line per fact

}  // namespace skein
