#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

// The names of one model architecture.
struct GgufArchitecture {
  const char* name;          // general.architecture
  const char* hugging_face;  // the architecture of a config.json
  const char* model_type;    // its model_type
  bool is_written = true;    // `skein model convert` writes such files, too
  bool is_encoder = false;
  bool has_experts = false;
};

// All architectures that are known.
std::span<const GgufArchitecture> GgufArchitectures();

// The architecture that the file names; kUnsupported, by name, if it is not known.
Result<const GgufArchitecture*> FindGgufArchitecture(const GgufMetadata& metadata);

// Makes the config.json of the file's model, with weights of `dtype`, or, of an encoder, of the
// type in the file. Errors name the metadata key.
// kUnsupported for a setting in the metadata that the model's config cannot express.
Result<nlohmann::ordered_json> GgufConfigJson(const GgufModel& file, DType dtype);

}  // namespace skein
