#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http/http_message.h"
#include "server/json/json.h"
#include "server/reads/read_inputs.h"
#include "server/reads/read_session.h"
#include "server/reads/vectors.h"
#include "server/router.h"

namespace skein {

// The answer to a request for embeddings or classes, from one vector for each input: embeddings
// normalized and cut, class outputs activated, as was asked for.
struct PooledResults {
  std::vector<std::vector<float>> vectors;
  ReadUsage usage;
};

// A request for embeddings or classes while its parts are put together.
struct PoolingCall {
  const ModelEntry* model = nullptr;
  Request request;  // output and scheduling; the prompt is still missing
  ReadInputs inputs;
  TimeUs tokenize_us = 0;
  bool normalize = false;
  std::optional<int32_t> dimensions;  // of an embedding that are kept; unset: all
  Activation activation = Activation::kNone;
};

// The first half of a handler: the model (which must have that output, otherwise kUnsupported), and
// the fields that every such request takes. Mistakes in them end up in reader->status().
Result<PoolingCall> BeginEmbedding(const ServerContext& context, FieldReader* reader);
Result<PoolingCall> BeginClassification(const ServerContext& context, FieldReader* reader);

// `dimensions` and `normalize` of an embedding.
void ReadEmbeddingFields(FieldReader* reader, bool normalize_by_default, PoolingCall* call);

// How a model's classes become probabilities.
Activation ActivationOf(const ModelTraits& traits);
// The name of class i.
std::string ClassLabel(const ModelTraits& traits, size_t i);

// The second half: reads the inputs and answers with what `write` makes of the results.
void FinishPooling(const ServerContext& context, PoolingCall call,
                   std::shared_ptr<Responder> responder,
                   std::function<std::string(const PooledResults&)> write);

}  // namespace skein
