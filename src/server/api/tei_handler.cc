#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/clock.h"
#include "server/api/tei_routes.h"
#include "server/early_check.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/reads/pooling_call.h"
#include "server/routes.h"

namespace skein {
namespace {

// The routes of text-embeddings-inference: they answer with bare arrays and have no model names.
// Errors have the form of the other routes.

constexpr size_t kEmbedAllFloatsMax = size_t{8} << 20;  // in one answer: some 100 MB of text

// Reads a text, or an array of one text or of a pair of texts.
Result<ReadInput> ReadTextOrPair(const ModelEntry& model, const InputOptions& options,
                                 const Json& value, const std::string& param) {
  EncodeInput text;
  if (value.is_string()) {
    text.text = value.get_ref<const std::string&>();
  } else if (AreStrings(value, 2)) {
    text.text = value[0].get_ref<const std::string&>();
    if (value.size() == 2) text.pair = value[1].get_ref<const std::string&>();
  } else {
    const Json holder;
    FieldReader reader(holder);
    reader.RefuseValue(
        param, "a string, an array of one or two strings, or an array of such arrays", value);
    return reader.status();
  }
  if (text.pair && !model.traits.encodes_pairs) {
    return Status(
        StatusCode::kUnsupported,
        fmt::format("{} is a pair of texts, the model {} takes single ones", param, model.name()),
        param);
  }
  return EncodeText(model, options, text, param);
}

// Whether ReadPredictInputs takes the inputs, as far as no tokenizer is needed to know.
bool ArePredictTexts(const ModelEntry& model, const Json* value) {
  const auto is_input = [most = model.traits.encodes_pairs ? 2 : 1](const Json& item) {
    return AreTexts(&item, static_cast<size_t>(most));
  };
  if (value == nullptr || !value->is_array() || value->empty() || !(*value)[0].is_array()) {
    return value != nullptr && is_input(*value);
  }
  return value->size() <= MaxInputs(model) && std::ranges::all_of(*value, is_input);
}

Result<ReadInputs> ReadPredictInputs(const ModelEntry& model, const InputOptions& options,
                                     const Json* value) {
  if (value == nullptr) {
    return Status(StatusCode::kInvalidArgument, "inputs must be given", "inputs");
  }
  ReadInputs result;
  result.is_batch = value->is_array() && !value->empty() && (*value)[0].is_array();
  if (!result.is_batch) {
    SKEIN_ASSIGN_OR_RETURN(result.inputs.emplace_back(),
                           ReadTextOrPair(model, options, *value, "inputs"));
    return result;
  }
  SKEIN_RETURN_IF_ERROR(CheckNumInputs(model, "inputs", value->size()));
  for (size_t i = 0; i < value->size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(
        result.inputs.emplace_back(),
        ReadTextOrPair(model, options, (*value)[i], fmt::format("inputs[{}]", i)));
  }
  return result;
}

// The classes with their scores, highest score first. Classes of equal scores keep their order.
Json Ranked(const ModelTraits& traits, const std::vector<float>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  Json list = Json::array();
  for (size_t i : order) {
    Json entry;
    entry["score"] = scores[i];
    entry["label"] = ClassLabel(traits, i);
    list.push_back(std::move(entry));
  }
  return list;
}

// Appends a sparse vector: [{"index", "value"}, ...].
void AppendSparse(const std::vector<TokenId>& ids, const std::vector<float>& values,
                  std::string* out) {
  *out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    *out += fmt::format(R"({}{{"index":{},"value":{}}})", i > 0 ? "," : "", ids[i], values[i]);
  }
  *out += ']';
}

}  // namespace

Status StartTeiEmbed(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginEmbedding(context, &reader));
  InputOptions options = ReadInputOptions(&reader, *call.model);
  ReadPromptName(&reader, *call.model, &options);
  ReadEmbeddingFields(&reader, /*normalize_by_default=*/!call.model->traits.sparse, &call);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "inputs", &reader, &call));
  FinishPooling(context, std::move(call), std::move(responder), [](const PooledResults& results) {
    std::string answer = "[";
    for (const std::vector<float>& vector : results.vectors) {
      if (answer.size() > 1) answer += ',';
      AppendFloats(vector, &answer);
    }
    return answer + "]";
  });
  return Status::Ok();
}

// Answers with the vectors of all tokens of each text, special tokens included. The vectors are
// neither pooled nor normalized.
Status StartTeiEmbedAll(const ServerContext& context, const HttpRequest& request,
                        std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginEmbedding(context, &reader));
  call.request.output = EmbedSpec{.all_tokens = true};
  InputOptions options = ReadInputOptions(&reader, *call.model);
  ReadPromptName(&reader, *call.model, &options);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "inputs", &reader, &call));
  std::vector<size_t> num_tokens;
  for (const ReadInput& input : call.inputs.inputs) num_tokens.push_back(input.ids.size());
  const size_t total = std::accumulate(num_tokens.begin(), num_tokens.end(), size_t{0});
  const size_t total_max =
      kEmbedAllFloatsMax / static_cast<size_t>(std::max(1, call.model->traits.embedding_size));
  if (total > total_max) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("inputs have {} tokens together, must have at most {}", total, total_max),
        "inputs");
  }
  FinishPooling(context, std::move(call), std::move(responder),
                [num_tokens = std::move(num_tokens)](const PooledResults& results) {
                  std::string answer = "[";
                  for (size_t i = 0; i < results.vectors.size(); ++i) {
                    answer += i > 0 ? ",[" : "[";
                    const std::span<const float> values(results.vectors[i]);
                    const size_t width = values.size() / num_tokens[i];
                    for (size_t token = 0; token < num_tokens[i]; ++token) {
                      if (token > 0) answer += ',';
                      AppendFloats(values.subspan(token * width, width), &answer);
                    }
                    answer += ']';
                  }
                  return answer + "]";
                });
  return Status::Ok();
}

// Answers with the sparse vectors of a SPLADE model, without their zeros.
Status StartTeiEmbedSparse(const ServerContext& context, const HttpRequest& request,
                           std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginSparseEmbedding(context, &reader));
  InputOptions options = ReadInputOptions(&reader, *call.model);
  ReadPromptName(&reader, *call.model, &options);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "inputs", &reader, &call));
  FinishPooling(context, std::move(call), std::move(responder), [](const PooledResults& results) {
    std::string answer = "[";
    for (size_t i = 0; i < results.vectors.size(); ++i) {
      if (i > 0) answer += ',';
      AppendSparse(results.ids[i], results.vectors[i], &answer);
    }
    return answer + "]";
  });
  return Status::Ok();
}

Status StartTeiPredict(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginClassification(context, &reader));
  const InputOptions options = ReadInputOptions(&reader, *call.model);
  const ModelTraits& traits = call.model->traits;
  if (!reader.Bool("raw_scores").value_or(false)) call.activation = ActivationOf(traits);
  if (!reader.status().ok()) return reader.status();
  const Json* inputs = reader.Find("inputs");
  if (ArePredictTexts(*call.model, inputs)) {
    SKEIN_RETURN_IF_ERROR(CheckReadWait(*call.model, call.request));
  }
  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  SKEIN_ASSIGN_OR_RETURN(call.inputs, ReadPredictInputs(*call.model, options, inputs));
  call.tokenize_us = clock.NowUs() - begin_us;
  const bool is_batch = call.inputs.is_batch;
  FinishPooling(context, std::move(call), std::move(responder),
                [is_batch, &traits](const PooledResults& results) {
                  if (!is_batch) return DumpJson(Ranked(traits, results.vectors[0]));
                  Json answer = Json::array();
                  for (const auto& scores : results.vectors) {
                    answer.push_back(Ranked(traits, scores));
                  }
                  return DumpJson(answer);
                });
  return Status::Ok();
}

Status StartTeiSimilarity(const ServerContext& context, const HttpRequest& request,
                          std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginEmbedding(context, &reader));
  const ModelEntry& model = *call.model;
  const Json* inputs = reader.Object("inputs");
  const Json* parameters = reader.Object("parameters");
  FieldReader parameter_reader(parameters != nullptr ? *parameters : body);
  InputOptions options = ReadInputOptions(&parameter_reader, model);
  ReadPromptName(&parameter_reader, model, &options);
  if (!parameter_reader.status().ok()) return parameter_reader.status();
  if (!reader.status().ok()) return reader.status();
  if (inputs == nullptr) {
    return Status(StatusCode::kInvalidArgument, "inputs must be given", "inputs");
  }
  FieldReader input_reader(*inputs);
  const auto source = input_reader.String("source_sentence");
  const Json* sentences = input_reader.Find("sentences");
  if (!source || sentences == nullptr || !AreStrings(*sentences, MaxInputs(model) - 1)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("inputs must be {{source_sentence: a string, sentences: an array of "
                              "1 to {} strings}}",
                              MaxInputs(model) - 1),
                  "inputs");
  }
  SKEIN_RETURN_IF_ERROR(CheckReadWait(model, call.request));
  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  auto& texts = call.inputs.inputs;
  SKEIN_ASSIGN_OR_RETURN(texts.emplace_back(),
                         EncodeText(model, options, {*source, {}}, "inputs.source_sentence"));
  for (size_t i = 0; i < sentences->size(); ++i) {
    const auto& text = (*sentences)[i].get_ref<const std::string&>();
    SKEIN_ASSIGN_OR_RETURN(
        texts.emplace_back(),
        EncodeText(model, options, {text, {}}, fmt::format("inputs.sentences[{}]", i)));
  }
  call.tokenize_us = clock.NowUs() - begin_us;
  FinishPooling(context, std::move(call), std::move(responder), [](const PooledResults& results) {
    std::vector<float> cosines;
    for (size_t i = 1; i < results.vectors.size(); ++i) {
      cosines.push_back(static_cast<float>(Cosine(results.vectors[0], results.vectors[i])));
    }
    std::string answer;
    AppendFloats(cosines, &answer);
    return answer;
  });
  return Status::Ok();
}

void AddTeiRoutes(Router* router) {
  router->AddWork("POST", "/embed", Starting(&StartTeiEmbed), RouteClass::kEmbed);
  router->AddWork("POST", "/embed_all", Starting(&StartTeiEmbedAll), RouteClass::kEmbed);
  router->AddWork("POST", "/embed_sparse", Starting(&StartTeiEmbedSparse), RouteClass::kEmbed);
  router->AddWork("POST", "/predict", Starting(&StartTeiPredict), RouteClass::kEmbed);
  router->AddWork("POST", "/similarity", Starting(&StartTeiSimilarity), RouteClass::kEmbed);
}

}  // namespace skein
