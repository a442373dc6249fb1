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

// The answer to a request for embeddings or classes: one vector for each input. As requested,
// embeddings are normalized and shortened, and activations are applied to class outputs.
struct PooledResults {
  std::vector<std::vector<float>> vectors;
  // Only with PoolingCall::sparse: the ids of the vectors' elements. All other elements are 0.
  std::vector<std::vector<TokenId>> ids;
  ReadUsage usage;
};

// A request for embeddings or classes while it is being built.
struct PoolingCall {
  const ModelEntry* model = nullptr;
  Request request;  // output and scheduling; the prompt is still missing
  ReadInputs inputs;
  TimeUs tokenize_us = 0;
  bool normalize = false;
  std::optional<int32_t> dimensions;  // an embedding keeps this many; unset: all
  ClassActivation activation = ClassActivation::kNone;
  std::string content_type = "application/json";  // of the answer
  bool sparse = false;                            // the vectors of a SPLADE model stay sparse
};

// The first half of a handler: finds the model and reads the fields of every such request.
// kUnsupported if the model has no such output. Errors in fields go to reader->status().
Result<PoolingCall> BeginEmbedding(const ServerContext& context, FieldReader* reader);
// Only for SPLADE models; the vectors stay sparse.
Result<PoolingCall> BeginSparseEmbedding(const ServerContext& context, FieldReader* reader);
// Only for ColBERT models: the vectors of all tokens.
Result<PoolingCall> BeginTokenEmbedding(const ServerContext& context, FieldReader* reader);
Result<PoolingCall> BeginClassification(const ServerContext& context, FieldReader* reader);

// Reads the fields `dimensions` and `normalize` of a request for embeddings.
void ReadEmbeddingFields(FieldReader* reader, bool normalize_by_default, PoolingCall* call);

// Reads the texts in the field `name`, and notes how long their encoding takes. Fails with the
// first error of any field, and before it encodes with kResourceExhausted if they would wait too
// long.
Status ReadCallTexts(const InputOptions& options, const char* name, FieldReader* reader,
                     PoolingCall* call);

// The function that turns a model's class outputs into probabilities.
ClassActivation ActivationOf(const ModelTraits& traits);
// The name of class i.
std::string ClassLabel(const ModelTraits& traits, size_t i);

// The second half of a handler: reads the inputs and answers with the result of `write`. Refuses
// inputs whose sparse vectors would be too many with all their zeros.
void FinishPooling(const ServerContext& context, PoolingCall call,
                   std::shared_ptr<Responder> responder,
                   std::function<std::string(const PooledResults&)> write);

}  // namespace skein
