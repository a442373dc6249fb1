#include "server/reads/pooling_call.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/early_check.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/json/scheduling_fields.h"

namespace skein {
namespace {

std::string AllowedDimensions(const ModelTraits& traits) {
  if (traits.any_dimensions) return fmt::format("an integer in [1, {}]", traits.embedding_size);
  if (traits.matryoshka_dimensions.empty()) {
    return fmt::format("{}: the model's embeddings cannot be cut", traits.embedding_size);
  }
  return fmt::format("one of {}", fmt::join(traits.matryoshka_dimensions, ", "));
}

bool CanHave(const ModelTraits& traits, int64_t dimensions) {
  if (dimensions == traits.embedding_size) return true;
  if (traits.any_dimensions) return dimensions >= 1 && dimensions < traits.embedding_size;
  return std::ranges::find(traits.matryoshka_dimensions, dimensions) !=
         traits.matryoshka_dimensions.end();
}

Status Lacks(const ModelEntry& model, const char* what) {
  return Status(StatusCode::kUnsupported,
                fmt::format("the model {} gives no {}", model.name(), what), "model");
}

void Finish(const PoolingCall& call, std::vector<float>* vector) {
  if (call.dimensions && static_cast<size_t>(*call.dimensions) < vector->size()) {
    vector->resize(static_cast<size_t>(*call.dimensions));
  }
  if (call.normalize) Normalize(*vector);
  if (call.activation != ClassActivation::kNone) *vector = Activate(*vector, call.activation);
}

// Whether the engine answers with sparse embeddings.
bool GivesSparse(const PoolingCall& call) {
  const auto* embed = std::get_if<EmbedSpec>(&call.request.output);
  return embed != nullptr && !embed->all_tokens && call.model->traits.sparse.has_value();
}

// The vectors of SPLADE models have some 30,000 elements if they are answered with their zeros.
Status CheckDenseSize(const PoolingCall& call) {
  constexpr size_t kFloatsMax = size_t{8} << 20;
  if (call.sparse || !GivesSparse(call)) return Status::Ok();
  const size_t most =
      std::max(size_t{1}, kFloatsMax / static_cast<size_t>(call.model->traits.embedding_size));
  const size_t count = call.inputs.inputs.size();
  if (count <= most) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} inputs have sparse vectors, which this route gives with all their "
                            "zeros for at most {}: ask /embed_sparse",
                            count, most),
                "input");
}

Result<PoolingCall> Begin(const ServerContext& context, FieldReader* reader) {
  PoolingCall call;
  SKEIN_ASSIGN_OR_RETURN(call.model, FindModel(*context.models, reader));
  ReadScheduling(reader, &call.request);
  return call;
}

}  // namespace

Result<PoolingCall> BeginEmbedding(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, Begin(context, reader));
  const ModelTraits& traits = call.model->traits;
  if (traits.late_interaction) {
    return Lacks(*call.model,
                 "embeddings of a whole text: it has a vector for each token, which /pooling gives "
                 "(task token_embed)");
  }
  if (!traits.embeds) {
    return Lacks(*call.model,
                 traits.generates ? "embeddings: it was loaded without --pooling" : "embeddings");
  }
  call.request.output = EmbedSpec{};
  return call;
}

Result<PoolingCall> BeginSparseEmbedding(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, Begin(context, reader));
  if (!call.model->traits.sparse) {
    return Lacks(*call.model,
                 "sparse vectors: it is no SPLADE model, and was loaded without --pooling splade");
  }
  call.request.output = EmbedSpec{};
  call.sparse = true;
  return call;
}

Result<PoolingCall> BeginTokenEmbedding(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, Begin(context, reader));
  if (!call.model->traits.late_interaction) {
    return Lacks(*call.model, "vectors of tokens: it is no ColBERT model; see /embed_all");
  }
  call.request.output = EmbedSpec{};
  return call;
}

Result<PoolingCall> BeginClassification(const ServerContext& context, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, Begin(context, reader));
  if (!call.model->traits.classifies) return Lacks(*call.model, "classes");
  call.request.output = ClassifySpec{};
  return call;
}

void ReadEmbeddingFields(FieldReader* reader, bool normalize_by_default, PoolingCall* call) {
  const ModelTraits& traits = call->model->traits;
  call->normalize = reader->Bool("normalize").value_or(normalize_by_default);
  const Json* value = reader->Find("dimensions");
  if (value == nullptr) return;
  const auto dimensions = JsonInt(*value);
  if (!dimensions || !CanHave(traits, *dimensions)) {
    return reader->RefuseValue("dimensions", AllowedDimensions(traits), *value);
  }
  call->dimensions = static_cast<int32_t>(*dimensions);
}

Status ReadCallTexts(const InputOptions& options, const char* name, FieldReader* reader,
                     PoolingCall* call) {
  if (!reader->status().ok()) return reader->status();
  const Json* value = reader->Find(name);
  if (AreTexts(value, MaxInputs(*call->model))) {
    SKEIN_RETURN_IF_ERROR(CheckReadWait(*call->model, call->request));
  }
  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  SKEIN_ASSIGN_OR_RETURN(call->inputs, ReadTexts(*call->model, options, name, value));
  call->tokenize_us = clock.NowUs() - begin_us;
  return Status::Ok();
}

ClassActivation ActivationOf(const ModelTraits& traits) {
  const bool single = traits.class_labels.size() <= 1;
  return traits.multi_label || single ? ClassActivation::kSigmoid : ClassActivation::kSoftmax;
}

std::string ClassLabel(const ModelTraits& traits, size_t i) {
  return i < traits.class_labels.size() ? traits.class_labels[i] : fmt::format("LABEL_{}", i);
}

void FinishPooling(const ServerContext& context, PoolingCall call,
                   std::shared_ptr<Responder> responder,
                   std::function<std::string(const PooledResults&)> write) {
  if (const Status fits = CheckDenseSize(call); !fits.ok()) {
    return responder->Send(ErrorResponse(fits));
  }
  ReadSession::Spec spec;
  spec.model = call.model;
  spec.metrics = context.metrics;
  spec.charge = context.charge;
  spec.route_class = context.route_class;
  spec.responder = std::move(responder);
  spec.tokenize_us = call.tokenize_us;
  for (ReadInput& input : call.inputs.inputs) {
    Request& request = spec.requests.emplace_back(call.request);
    request.prompt = std::move(input.ids);
    request.second_segment_begin = input.second_segment_begin;
    request.num_attended = input.num_attended;
  }
  call.inputs.inputs.clear();
  spec.content_type = call.content_type;
  spec.write = [call = std::move(call), write = std::move(write)](ReadResults results) {
    PooledResults pooled;
    pooled.usage = results.usage;
    pooled.vectors.reserve(results.reads.size());
    for (ReadValues& read : results.reads) {
      if (call.sparse) {
        pooled.ids.push_back(std::move(read.ids));
      } else if (GivesSparse(call)) {
        read.values = DenseVector(read, call.model->traits.embedding_size);
      }
      Finish(call, &read.values);
      pooled.vectors.push_back(std::move(read.values));
    }
    return write(pooled);
  };
  std::make_shared<ReadSession>(std::move(spec))->Start();
}

}  // namespace skein
