#include "server/reads/pair_reads.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/decisions/decision_answer.h"
#include "server/decisions/decision_labels.h"
#include "server/decisions/decision_method_names.h"
#include "server/decisions/decision_prompt.h"
#include "server/decisions/decision_requests.h"
#include "server/decisions/option_spellings.h"
#include "server/early_check.h"
#include "server/prompt_text.h"
#include "server/reads/late_interaction.h"
#include "server/reads/read_inputs.h"
#include "server/reads/vectors.h"

namespace skein {
namespace {

// The prompt on which Qwen3-Reranker was trained.
constexpr char kRerankerHead[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: {}\n<Query>: {}\n<Document>: ";
constexpr char kRerankerTail[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr char kRerankerInstruct[] =
    "Given a web search query, retrieve relevant passages that answer the query";

// The parts of a prompt around a document.
struct PairPrompt {
  std::string head;
  std::string tail;
  bool add_special_tokens = false;
};

const std::string& QueryOf(const PairTask& task, size_t document) {
  return task.queries.size() == 1 ? task.queries[0] : task.queries[document];
}

std::string QueryFieldOf(const PairTask& task, size_t query) {
  return task.queries.size() > 1 ? fmt::format("{}[{}]", task.query_field, query)
                                 : task.query_field;
}

std::string FieldOf(const PairTask& task, size_t document) {
  return fmt::format("{}[{}]", task.document_field, document);
}

std::string WhatOf(const PairTask& task, size_t document) {
  return fmt::format("{} with {}", task.query_field, FieldOf(task, document));
}

// `text` may hold marked texts (prompt_text.h). `max_tokens` is passed to EncodePrompt.
Result<std::vector<TokenId>> Encode(const ModelEntry& model, std::string_view text,
                                    bool add_special_tokens, const std::string& field,
                                    size_t max_tokens = 0) {
  std::vector<TokenId> ids;
  const Status encoded = EncodePrompt(model, text, add_special_tokens, max_tokens, &ids);
  if (encoded.ok()) return ids;
  return Status(encoded.code(), fmt::format("{}: {}", field, encoded.message()), field);
}

// Removes surplus tokens from the end of the document, which stands before the prompt's tail.
Status CutDocument(const ModelEntry& model, const PairTask& task, const PairPrompt& prompt,
                   size_t document, std::vector<TokenId>* ids) {
  if (!task.max_prompt_tokens || ids->size() <= *task.max_prompt_tokens) return Status::Ok();
  const std::string field = FieldOf(task, document);
  SKEIN_ASSIGN_OR_RETURN(const auto own,
                         Encode(model, PlainText(model, task.documents[document]), false, field));
  SKEIN_ASSIGN_OR_RETURN(const auto tail, Encode(model, prompt.tail, false, field));
  const size_t excess = ids->size() - *task.max_prompt_tokens;
  if (excess > own.size() || tail.size() + excess > ids->size()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} alone leaves no room for {} in {} tokens: shorten it",
                              task.query_field, field, *task.max_prompt_tokens),
                  task.query_field);
  }
  const auto end = ids->end() - static_cast<std::ptrdiff_t>(tail.size());
  ids->erase(end - static_cast<std::ptrdiff_t>(excess), end);
  return Status::Ok();
}

// Makes one request for each document, with the prompt `prompt_of`(query).
Result<std::vector<Request>> WordedReads(
    const ModelEntry& model, const PairTask& task, const OutputSpec& output,
    const std::function<PairPrompt(const std::string& query)>& prompt_of) {
  std::vector<Request> requests;
  PairPrompt prompt = prompt_of(task.queries[0]);
  for (size_t i = 0; i < task.documents.size(); ++i) {
    if (i > 0 && task.queries.size() > 1) prompt = prompt_of(task.queries[i]);
    const std::string text = prompt.head + PlainText(model, task.documents[i]) + prompt.tail;
    SKEIN_ASSIGN_OR_RETURN(auto ids,
                           Encode(model, text, prompt.add_special_tokens, FieldOf(task, i),
                                  task.max_prompt_tokens ? 0 : MaxPairTokens(model)));
    SKEIN_RETURN_IF_ERROR(CutDocument(model, task, prompt, i, &ids));
    SKEIN_RETURN_IF_ERROR(
        CheckPromptLength(MaxPairTokens(model), ids.size(), FieldOf(task, i), WhatOf(task, i)));
    Request request = task.base;
    request.prompt = std::move(ids);
    request.output = output;
    requests.push_back(std::move(request));
  }
  size_t num_own = 0;
  if (requests.size() == 1) {
    SKEIN_ASSIGN_OR_RETURN(
        const auto own,
        Encode(model, PlainText(model, task.documents[0]) + prompt.tail, false, FieldOf(task, 0)));
    num_own = own.size();
  }
  SetSharedHead(num_own, &requests);
  return requests;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The probability of one of two classes from their logits; with `raw`, its logit minus the other's.
double OneOfTwo(const std::vector<float>& logits, size_t one, bool raw) {
  if (raw) return static_cast<double>(logits[one]) - static_cast<double>(logits[1 - one]);
  return AnswerOf(logits, 1.0).probabilities[one];
}

PairPrompt RerankerPrompt(const ModelEntry& model, const PairTask& task, const std::string& query) {
  const std::string& instruction = task.instruction;
  return {fmt::format(kRerankerHead,
                      PlainText(model, instruction.empty() ? kRerankerInstruct : instruction),
                      PlainText(model, query)),
          kRerankerTail, false};
}

Result<PairReads> RerankerReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_ASSIGN_OR_RETURN(const LabelFinder finder,
                         LabelFinder::Make(model.tokenizer, kRerankerTail, false));
  SKEIN_ASSIGN_OR_RETURN(DecisionLabels labels, finder.Exactly({"no", "yes"}));
  PairReads result;
  SKEIN_ASSIGN_OR_RETURN(
      result.requests,
      WordedReads(model, task, LabelSpec{std::move(labels.tokens), false},
                  [&](const std::string& query) { return RerankerPrompt(model, task, query); }));
  result.scores = [raw = task.raw_scores](const ReadResults& results) {
    std::vector<double> scores;
    for (const ReadValues& read : results.reads) scores.push_back(OneOfTwo(read.values, 1, raw));
    return scores;
  };
  return result;
}

// The prompt of the relevance question around a document.
PairPrompt RelevancePrompt(const ModelEntry& model, const PromptFrame& frame, Reading reading,
                           const std::string& instruction, const std::string& query) {
  if (reading == Reading::kWords) {
    return {frame.before + PlainText(model, RelevanceWordsHead(instruction, query)),
            std::string(kRelevanceWordsQuestion) + frame.after, frame.add_special_tokens};
  }
  const std::string opening = "Document:\n";
  return {frame.before + PlainText(model, RelevanceHead(instruction, query)) + opening,
          RelevanceQuestion("").substr(opening.size()) + frame.after, frame.add_special_tokens};
}

// The natural logarithm of the sum of e^value over a range.
double LogSum(std::span<const float> values) {
  const double max = static_cast<double>(*std::ranges::max_element(values));
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - max);
  return std::log(sum) + max;
}

// Reads P(yes) of the relevance question. The probabilities of all spellings of yes are summed; so
// are those of no.
Result<PairReads> RelevanceReads(const ModelEntry& model, const PairTask& task,
                                 const DecisionMethod& method) {
  SKEIN_ASSIGN_OR_RETURN(const PromptFrame frame, MakePromptFrame(model, method.prompt));
  const auto prompt_of = [&](const std::string& query) {
    return RelevancePrompt(model, frame, method.reading, task.instruction, query);
  };
  SKEIN_ASSIGN_OR_RETURN(
      const LabelFinder finder,
      LabelFinder::Make(model.tokenizer, prompt_of("").tail, frame.space_before_label));
  auto labels = finder.SpellingsOf(SpellingsOfYesNo(""));
  if (!labels.ok()) {
    return Status(labels.status().code(), "the question of relevance " + labels.status().message(),
                  "model");
  }
  const size_t num_yes = (*labels)[0].size();
  LabelSpec spec{std::move((*labels)[0]), false};
  spec.tokens.insert(spec.tokens.end(), (*labels)[1].begin(), (*labels)[1].end());
  PairReads result;
  SKEIN_ASSIGN_OR_RETURN(result.requests, WordedReads(model, task, spec, prompt_of));
  result.scores = [raw = task.raw_scores, temperature = method.temperature, offset = method.offset,
                   num_yes](const ReadResults& results) {
    std::vector<double> scores;
    for (const ReadValues& read : results.reads) {
      const std::span<const float> values = read.values;
      const double odds = LogSum(values.first(num_yes)) - LogSum(values.subspan(num_yes));
      scores.push_back(raw ? odds : Sigmoid((odds + offset) / temperature));
    }
    return scores;
  };
  return result;
}

// A query behind a document: the tokens of the query, except its first ones, which the prompt
// holds.
struct QueryText {
  Request request;
  size_t num_tokens = 0;
};

Result<QueryText> QueryBehind(const ModelEntry& model, const PairTask& task, size_t i,
                              std::string_view document) {
  const std::string before =
      (task.instruction.empty() ? "" : PlainText(model, task.instruction) + "\n\n") + "Document: ";
  const std::string tail = "\nQuery:";
  const std::string query = PlainText(model, QueryOf(task, i));
  const std::string field = FieldOf(task, i);
  SKEIN_ASSIGN_OR_RETURN(
      auto ids, Encode(model, before + PlainText(model, document) + tail + " " + query, true, field,
                       task.max_prompt_tokens ? 0 : MaxPairTokens(model)));
  SKEIN_ASSIGN_OR_RETURN(const auto own, Encode(model, tail + " " + query, false, field));
  SKEIN_ASSIGN_OR_RETURN(const auto head, Encode(model, tail, false, field));
  const auto shared = std::ranges::mismatch(head, own).in1 - head.begin();
  const PairPrompt prompt{before, tail + " " + query, true};
  if (!document.empty()) SKEIN_RETURN_IF_ERROR(CutDocument(model, task, prompt, i, &ids));
  SKEIN_RETURN_IF_ERROR(
      CheckPromptLength(MaxPairTokens(model), ids.size(), field, WhatOf(task, i)));
  QueryText text;
  text.num_tokens = std::min(own.size() - static_cast<size_t>(shared), ids.size() - 1);
  if (text.num_tokens == 0) {
    return Status(StatusCode::kInvalidArgument, "the query must have at least one token",
                  task.query_field);
  }
  const auto begin = static_cast<int32_t>(ids.size() - text.num_tokens);
  text.request = task.base;
  text.request.output = LabelSpec{{ids.back()}, /*want_log_sum_exp=*/true};
  ids.pop_back();
  if (text.num_tokens > 1) text.request.prompt_logprobs = {.num_top = 0, .start = begin};
  text.request.prompt = std::move(ids);
  return text;
}

double LogLikelihood(const ReadResults& results, size_t row) {
  const ReadValues& read = results.reads[row];
  double sum = static_cast<double>(read.values[0]) - static_cast<double>(read.log_sum_exp);
  for (const float logprob : results.prompt_logprobs[row]) sum += static_cast<double>(logprob);
  return sum;
}

// Reads by how much a document raises the log-probability of the query, per token.
Result<PairReads> LikelihoodReads(const ModelEntry& model, const PairTask& task,
                                  const DecisionMethod& method) {
  const size_t num_documents = task.documents.size();
  const size_t num_queries = task.queries.size();
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, task.document_field, num_documents + num_queries));
  PairReads result;
  std::vector<size_t> num_tokens;
  for (size_t i = 0; i < num_documents + num_queries; ++i) {
    const bool has_document = i < num_documents;
    const size_t of = has_document ? i : i - num_documents;
    SKEIN_ASSIGN_OR_RETURN(
        QueryText text,
        QueryBehind(model, task, of, has_document ? task.documents[of] : std::string()));
    result.requests.push_back(std::move(text.request));
    result.charged.push_back(has_document);
    if (!has_document) num_tokens.push_back(text.num_tokens);
  }
  SetSharedHead(0, &result.requests);
  result.scores = [raw = task.raw_scores, temperature = method.temperature, offset = method.offset,
                   num_tokens = std::move(num_tokens), num_documents](const ReadResults& results) {
    std::vector<double> scores;
    for (size_t i = 0; i < num_documents; ++i) {
      const size_t query = num_tokens.size() == 1 ? 0 : i;
      const double gain =
          (LogLikelihood(results, i) - LogLikelihood(results, num_documents + query)) /
          static_cast<double>(num_tokens[query]);
      scores.push_back(raw ? gain : Sigmoid((gain + offset) / temperature));
    }
    return scores;
  };
  return result;
}

Result<PairReads> AskedReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckReadsLabels(model));
  const DecisionMethod method = MethodOf(model.traits.decisions.relevance, task.method);
  if (method.calibrated || method.permuted || method.reading == Reading::kSimilarity) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("reading of pairs must be letters, words or likelihood, got \"{}\"",
                              ReadingName(method)),
                  "reading");
  }
  if (method.reading == Reading::kLikelihood) return LikelihoodReads(model, task, method);
  return RelevanceReads(model, task, method);
}

// Encodes the pair as the cross-encoder was trained.
Result<Request> EncodedPair(const ModelEntry& model, const PairTask& task, size_t i) {
  EncodeOptions options;
  options.special_as_text = model.user_special_tokens != UserSpecialTokens::kParse;
  if (task.max_prompt_tokens) options.truncation.emplace().max_length = *task.max_prompt_tokens;
  Encoding encoding;
  Status encoded = Status::Ok();
  if (!task.max_prompt_tokens) {
    encoded = CheckTextBytes(*model.tokenizer, QueryOf(task, i).size() + task.documents[i].size(),
                             MaxPairTokens(model));
  }
  if (encoded.ok()) {
    encoded = model.tokenizer->EncodeFull({QueryOf(task, i), std::string_view(task.documents[i])},
                                          options, &encoding);
  }
  if (!encoded.ok()) {
    return Status(encoded.code(), fmt::format("{}: {}", WhatOf(task, i), encoded.message()),
                  FieldOf(task, i));
  }
  SKEIN_RETURN_IF_ERROR(CheckPromptLength(MaxPairTokens(model), encoding.ids.size(),
                                          FieldOf(task, i), WhatOf(task, i)));
  Request request = task.base;
  request.prompt = std::move(encoding.ids);
  request.output = ClassifySpec{};
  const auto second = std::find(encoding.type_ids.begin(), encoding.type_ids.end(), 1);
  if (second != encoding.type_ids.end()) {
    request.second_segment_begin = static_cast<int32_t>(second - encoding.type_ids.begin());
  }
  return request;
}

Result<PairReads> ClassifierReads(const ModelEntry& model, const PairTask& task) {
  const size_t num_classes = model.traits.class_labels.size();
  if (num_classes > 2) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the model {} has {} classes: only heads with one output or two "
                              "classes score pairs; see /classify",
                              model.name(), num_classes),
                  "model");
  }
  PairReads result;
  if (model.traits.qwen3_reranker) {
    SKEIN_ASSIGN_OR_RETURN(result.requests,
                           WordedReads(model, task, ClassifySpec{}, [&](const std::string& query) {
                             return RerankerPrompt(model, task, query);
                           }));
  } else {
    for (size_t i = 0; i < task.documents.size(); ++i) {
      SKEIN_ASSIGN_OR_RETURN(Request request, EncodedPair(model, task, i));
      result.requests.push_back(std::move(request));
    }
    if (result.requests.size() > 1) SetSharedHead(0, &result.requests);
  }
  // The second of two classes is the relevant one. GGUF files of Qwen3's reranker have "yes" first.
  const size_t relevant =
      model.traits.qwen3_reranker && num_classes == 2 && model.traits.class_labels[0] == "yes" ? 0
                                                                                               : 1;
  result.scores = [raw = task.raw_scores, relevant](const ReadResults& results) {
    std::vector<double> scores;
    for (const ReadValues& read : results.reads) {
      if (read.values.size() == 2) {
        scores.push_back(OneOfTwo(read.values, relevant, raw));
      } else {
        const double value = static_cast<double>(read.values[0]);
        scores.push_back(raw ? value : Sigmoid(value));
      }
    }
    return scores;
  };
  return result;
}

// The text that the model puts before queries or documents; empty: none.
std::string PromptNamed(const ModelTraits& traits, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto found = traits.prompts.find(name); found != traits.prompts.end()) {
      return found->second;
    }
  }
  return {};
}

Result<PairReads> EmbeddingReads(const ModelEntry& model, const PairTask& task) {
  const SparseTraits* const sparse = model.traits.sparse ? &*model.traits.sparse : nullptr;
  const bool documents_only = sparse != nullptr && sparse->documents_only;
  if (documents_only && sparse->query_weights.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the model {} encodes documents alone, and its files have no weights "
                              "of a query's tokens (SparseStaticEmbedding)",
                              model.name()),
                  "model");
  }
  SKEIN_RETURN_IF_ERROR(
      CheckNumReads(model, task.document_field, task.queries.size() + task.documents.size()));
  const std::string of_query = PromptNamed(model.traits, {"query", model.traits.default_prompt});
  const std::string of_document =
      PromptNamed(model.traits, {"document", "passage", model.traits.default_prompt});
  PairReads result;
  const auto add = [&](const std::string& text, const std::string& field) -> Status {
    SKEIN_ASSIGN_OR_RETURN(auto ids, Encode(model, text, true, field));
    if (task.max_prompt_tokens && ids.size() > *task.max_prompt_tokens) {
      ids.clear();
      EncodeOptions options;
      options.truncation.emplace().max_length = *task.max_prompt_tokens;
      Encoding encoding;
      const Status encoded = model.tokenizer->EncodeFull({text, {}}, options, &encoding);
      if (!encoded.ok()) return Status(encoded.code(), field + ": " + encoded.message(), field);
      ids = std::move(encoding.ids);
    }
    SKEIN_RETURN_IF_ERROR(CheckPromptLength(MaxPairTokens(model), ids.size(), field, field));
    Request request = task.base;
    request.prompt = std::move(ids);
    request.output = EmbedSpec{};
    result.requests.push_back(std::move(request));
    return Status::Ok();
  };
  std::vector<ReadValues> weighted;  // queries that are not computed
  for (size_t i = 0; i < task.queries.size(); ++i) {
    const std::string field = QueryFieldOf(task, i);
    if (!documents_only) {
      SKEIN_RETURN_IF_ERROR(add(of_query + task.queries[i], field));
      continue;
    }
    SKEIN_ASSIGN_OR_RETURN(auto ids, Encode(model, of_query + task.queries[i], false, field));
    if (task.max_prompt_tokens) {
      ids.resize(std::min<size_t>(ids.size(), *task.max_prompt_tokens));
    } else {
      SKEIN_RETURN_IF_ERROR(CheckPromptLength(MaxPairTokens(model), ids.size(), field, field));
    }
    weighted.push_back(WeightsOfTokens(sparse->query_weights, std::move(ids)));
  }
  const size_t first_document = result.requests.size();
  for (size_t i = 0; i < task.documents.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(of_document + task.documents[i], FieldOf(task, i)));
  }
  result.scores = [first_document, num_queries = task.queries.size(),
                   weighted = std::move(weighted),
                   is_sparse = sparse != nullptr](const ReadResults& results) {
    const std::vector<ReadValues>& reads = results.reads;
    std::vector<double> scores;
    for (size_t i = first_document; i < reads.size(); ++i) {
      const size_t at = num_queries == 1 ? 0 : i - first_document;
      const ReadValues& query = weighted.empty() ? reads[at] : weighted[at];
      scores.push_back(is_sparse ? SparseProduct(query, reads[i])
                                 : Cosine(query.values, reads[i].values));
    }
    return scores;
  };
  return result;
}

// Reads the late interaction of a query's tokens with those of a document.
Result<PairReads> LateReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_RETURN_IF_ERROR(
      CheckNumReads(model, task.document_field, task.queries.size() + task.documents.size()));
  const size_t most = task.max_prompt_tokens.value_or(MaxPairTokens(model));
  PairReads result;
  std::vector<std::vector<TokenId>> ids;
  const auto add = [&](LateSide side, const std::string& text, const std::string& field) -> Status {
    const char* const name = side == LateSide::kQuery ? "query" : "document";
    SKEIN_ASSIGN_OR_RETURN(LateText late, EncodeLate(model, side, PromptNamed(model.traits, {name}),
                                                     text, most, field));
    Request& request = result.requests.emplace_back(task.base);
    request.prompt = late.ids;
    request.num_attended = late.num_attended;
    request.output = EmbedSpec{};
    ids.push_back(std::move(late.ids));
    return Status::Ok();
  };
  for (size_t i = 0; i < task.queries.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(LateSide::kQuery, task.queries[i], QueryFieldOf(task, i)));
  }
  constexpr size_t kFloatsMax = size_t{64} << 20;  // of all vectors: 256 MiB
  const size_t tokens_max = kFloatsMax / static_cast<size_t>(model.traits.embedding_size);
  size_t num_tokens = 0;
  for (size_t i = 0; i < task.documents.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(LateSide::kDocument, task.documents[i], FieldOf(task, i)));
    num_tokens += ids.back().size();
    if (num_tokens <= tokens_max) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} have more than {} tokens together: send several requests",
                              task.document_field, tokens_max),
                  task.document_field);
  }
  result.scores = [&traits = model.traits, num_queries = task.queries.size(),
                   ids = std::move(ids)](const ReadResults& results) {
    const auto width = static_cast<size_t>(traits.embedding_size);
    const auto vectors_of = [&](size_t i, LateSide side) {
      std::vector<float> vectors =
          InteractingVectors(*traits.late_interaction, side, ids[i], results.reads[i].values);
      NormalizeEach(vectors, width);
      return vectors;
    };
    std::vector<double> scores;
    std::vector<float> query = vectors_of(0, LateSide::kQuery);
    for (size_t i = num_queries; i < ids.size(); ++i) {
      if (num_queries > 1) query = vectors_of(i - num_queries, LateSide::kQuery);
      scores.push_back(MaxSim(query, vectors_of(i, LateSide::kDocument), width));
    }
    return scores;
  };
  return result;
}

}  // namespace

size_t MaxPairTokens(const ModelEntry& model) {
  const ModelTraits& traits = model.traits;
  const bool reads_labels =
      !traits.classifies && !traits.late_interaction && (traits.qwen3_reranker || !traits.embeds);
  return reads_labels ? MaxLabelTokens(model) : MaxTokens(model);
}

Result<PairReads> MakePairReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, task.document_field, task.documents.size()));
  SKEIN_RETURN_IF_ERROR(CheckReadWait(model, task.base));
  if (model.traits.classifies) return ClassifierReads(model, task);
  if (model.traits.qwen3_reranker) return RerankerReads(model, task);
  if (model.traits.late_interaction) return LateReads(model, task);
  if (model.traits.embeds) return EmbeddingReads(model, task);
  return AskedReads(model, task);
}

}  // namespace skein
