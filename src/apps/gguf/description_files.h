#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace skein {

// The files of a model directory that describes a GGUF file. Both fail with the path and the
// system's reason.

// Makes the folder, and those above it, unless they are there.
Status MakeDirectory(const std::string& dir);

Status WriteJson(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace skein
