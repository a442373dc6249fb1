#pragma once

#include <nlohmann/json.hpp>

#include "apps/gguf/gguf_keys.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

inline constexpr char kGgufClasses[] = "cls.output.weight";  // the last layer of a classifier

// Adds the names of a classifier's classes: the file's, else LABEL_0, LABEL_1, ...
Status ReadGgufLabels(const GgufModel& file, const GgufKeys& keys, nlohmann::ordered_json* config);

}  // namespace skein
