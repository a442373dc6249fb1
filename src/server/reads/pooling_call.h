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

// The answer to a request for embeddings or classes, with one vector for each input. Embeddings are
// normalized and cut, class outputs activated, as requested.
struct PooledResults {
  std::vector<std::vector<float>> vectors;
  ReadUsage usage;
};

// A request for embeddings or classes under construction.
struct PoolingCall {
  const ModelEntry* model = nullptr;
  Request request;  // output and scheduling; the prompt is still missing
  ReadInputs inputs;
  TimeUs tokenize_us = 0;
  bool normalize = false;
  std::optional<int32_t> dimensions;  // kept dimensions of an embedding; unset: all
  Activation activation = Activation::kNone;
};

// The first half of a handler: finds the model (kUnsupported if it lacks that output) and reads the
// fields of every such request. Errors in them go to reader->status().
Result<PoolingCall> BeginEmbedding(const ServerContext& context, FieldReader* reader);
Result<PoolingCall> BeginClassification(const ServerContext& context, FieldReader* reader);

// Reads `dimensions` and `normalize` of an embedding.
void ReadEmbeddingFields(FieldReader* reader, bool normalize_by_default, PoolingCall* call);

// The function that turns a model's class outputs into probabilities.
Activation ActivationOf(const ModelTraits& traits);
// The name of class i.
std::string ClassLabel(const ModelTraits& traits, size_t i);

// The second half: reads the inputs and answers with the result of `write`.
void FinishPooling(const ServerContext& context, PoolingCall call,
                   std::shared_ptr<Responder> responder,
                   std::function<std::string(const PooledResults&)> write);

}  // namespace skein
