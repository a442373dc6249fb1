#pragma once

#include <string>

#include "apps/gguf/gguf_architecture.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

// Writes into `dir` the modules with which the file's model makes embeddings, as
// sentence-transformers keeps them: the pooling, the Dense modules whose matrices (dense_2,
// dense_3) are in the file, widened to f32, and a normalization, since llama.cpp normalizes every
// embedding. Writes nothing for a file that names no pooling, or a model that ranks.
Status WriteGgufModules(const GgufModel& file, const GgufArchitecture& architecture,
                        const std::string& dir);

}  // namespace skein
