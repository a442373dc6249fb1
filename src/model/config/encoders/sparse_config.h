#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "model/pooling.h"

namespace skein {

// Reads the pooling of a SPLADE model in the layout of sentence-transformers: modules.json names a
// SpladePooling, which has a config.json. If it names a Router, the modules of documents are read
// (router_config.json). Returns nullopt for models of other kinds. Fails with kUnsupported, naming
// the member, for another pooling_strategy or activation_function.
Result<std::optional<SparseFields>> LoadSparseFields(const std::string& model_dir);

// Gives the model the head that predicts masked tokens. Fails with kUnsupported if its architecture
// has no such head here, and with kInvalidArgument (param "pooling") if its config names none.
Status UseSparseHead(const SparseFields& sparse, ModelConfig* config);

// Adapts the head to a pooling. kSplade needs the head that predicts masked tokens; any other
// pooling is of the bare encoder's states. Fails as UseSparseHead does.
Status AdaptHead(Pooling pooling, ModelConfig* config);

}  // namespace skein
