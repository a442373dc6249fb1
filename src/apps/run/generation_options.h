#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli_names.h"
#include "server/json/json.h"

namespace skein {

// The options about sampling and about the end of an answer.
struct GenerationOptions {
  std::optional<int32_t> max_tokens;
  std::optional<double> temperature, top_p, min_p;
  std::optional<int32_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

void AddGenerationOptions(CLI::App* app, GenerationOptions* options);

// The options that were given, as members of a request of the API.
Json RequestFields(const GenerationOptions& options);

}  // namespace skein
