#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

// One model architecture, as GGUF files spell it.
struct GgufArchitecture {
  const char* name;          // general.architecture
  const char* hugging_face;  // the architecture of a config.json
  const char* model_type;    // its model_type
};

// All architectures that are known.
std::span<const GgufArchitecture> GgufArchitectures();

// The architecture that the file names; kUnsupported, by name, if it is not known, and for a
// decision model, which a file does not hold in a form that can be read.
Result<const GgufArchitecture*> FindGgufArchitecture(const GgufMetadata& metadata);

// The config.json of the file's model, with weights of `dtype`. Errors name the metadata key.
// kUnsupported for what the metadata asks for and the model's config cannot say.
Result<nlohmann::ordered_json> GgufConfigJson(const GgufModel& file, DType dtype);

}  // namespace skein
