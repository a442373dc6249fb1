#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/json/json.h"

namespace skein {

// The choices about how an answer is drawn and where it ends.
struct GenerationOptions {
  std::optional<int32_t> max_tokens;
  std::optional<double> temperature, top_p, min_p;
  std::optional<int32_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

void AddGenerationOptions(CLI::App* app, GenerationOptions* options);

// The given options, as the members of a request in the API's spelling.
Json RequestFields(const GenerationOptions& options);

}  // namespace skein
