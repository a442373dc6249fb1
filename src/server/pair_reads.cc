#include "server/pair_reads.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/decision_answer.h"
#include "server/decision_labels.h"
#include "server/decision_reads.h"
#include "server/read_inputs.h"
#include "server/vectors.h"

namespace skein {
namespace {

// Qwen3-Reranker's own words; the model is trained on them.
constexpr char kRerankerHead[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: {}\n<Query>: {}\n<Document>: ";
constexpr char kRerankerTail[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr char kRerankerInstruct[] =
    "Given a web search query, retrieve relevant passages that answer the query";

// A prompt around a document.
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

Result<std::vector<TokenId>> Encode(const ModelEntry& model, std::string_view text,
                                    bool add_special_tokens, const std::string& field) {
  std::vector<TokenId> ids;
  const Status encoded = model.tokenizer->Encode(text, add_special_tokens, &ids);
  if (encoded.ok()) return ids;
  return Status(encoded.code(), fmt::format("{}: {}", field, encoded.message()), field);
}

// Takes what is too much from the end of the document, whose tokens lie before the tail's.
Status CutDocument(const ModelEntry& model, const PairTask& task, const PairPrompt& prompt,
                   size_t document, std::vector<TokenId>* ids) {
  if (!task.max_prompt_tokens || ids->size() <= *task.max_prompt_tokens) return Status::Ok();
  const std::string field = FieldOf(task, document);
  SKEIN_ASSIGN_OR_RETURN(const auto own, Encode(model, task.documents[document], false, field));
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

// One request for each document, in `prompt_of`(query)'s words.
Result<std::vector<Request>> WordedReads(
    const ModelEntry& model, const PairTask& task, const OutputSpec& output,
    const std::function<PairPrompt(const std::string& query)>& prompt_of) {
  std::vector<Request> requests;
  PairPrompt prompt = prompt_of(task.queries[0]);
  for (size_t i = 0; i < task.documents.size(); ++i) {
    if (i > 0 && task.queries.size() > 1) prompt = prompt_of(task.queries[i]);
    const std::string text = prompt.head + task.documents[i] + prompt.tail;
    SKEIN_ASSIGN_OR_RETURN(auto ids,
                           Encode(model, text, prompt.add_special_tokens, FieldOf(task, i)));
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
    SKEIN_ASSIGN_OR_RETURN(const auto own,
                           Encode(model, task.documents[0] + prompt.tail, false, FieldOf(task, 0)));
    num_own = own.size();
  }
  SetSharedHead(num_own, &requests);
  return requests;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Of two logits, the second one's share; or by how much it is the larger.
double SecondOfTwo(const std::vector<float>& logits, bool raw) {
  if (raw) return static_cast<double>(logits[1]) - static_cast<double>(logits[0]);
  return AnswerOf(logits, 1.0).probabilities[1];
}

PairPrompt RerankerPrompt(const PairTask& task, const std::string& query) {
  const std::string& instruction = task.instruction;
  return {fmt::format(kRerankerHead, instruction.empty() ? kRerankerInstruct : instruction, query),
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
                  [&](const std::string& query) { return RerankerPrompt(task, query); }));
  result.scores = [raw = task.raw_scores](const std::vector<ReadValues>& reads) {
    std::vector<double> scores;
    for (const ReadValues& read : reads) scores.push_back(SecondOfTwo(read.values, raw));
    return scores;
  };
  return result;
}

Result<PairReads> QuestionReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckReadsLabels(model));
  SKEIN_ASSIGN_OR_RETURN(const PromptFrame frame, MakePromptFrame(model));
  const std::string tail = RelevanceQuestion("") + frame.after;
  const std::string opening = "Document:\n";
  const auto prompt_of = [&](const std::string& query) {
    return PairPrompt{frame.before + RelevanceHead(task.instruction, query) + opening,
                      tail.substr(opening.size()), frame.add_special_tokens};
  };
  SKEIN_ASSIGN_OR_RETURN(
      const LabelFinder finder,
      LabelFinder::Make(model.tokenizer, tail.substr(opening.size()), frame.space_before_label));
  Result<DecisionLabels> labels = finder.YesNo();
  if (!labels.ok()) {
    return Status(labels.status().code(), "the question of relevance " + labels.status().message(),
                  "model");
  }
  PairReads result;
  SKEIN_ASSIGN_OR_RETURN(
      result.requests,
      WordedReads(model, task, LabelSpec{std::move(labels->tokens), false}, prompt_of));
  result.scores = [raw = task.raw_scores,
                   temperature = static_cast<double>(model.traits.decision_temperature)](
                      const std::vector<ReadValues>& reads) {
    std::vector<double> scores;
    for (const ReadValues& read : reads) {
      const double yes = static_cast<double>(read.values[0]);
      const double no = static_cast<double>(read.values[1]);
      scores.push_back(raw ? yes - no : AnswerOf(read.values, temperature).probabilities[0]);
    }
    return scores;
  };
  return result;
}

// The pair as a cross-encoder was taught it.
Result<Request> EncodedPair(const ModelEntry& model, const PairTask& task, size_t i) {
  EncodeOptions options;
  if (task.max_prompt_tokens) options.truncation.emplace().max_length = *task.max_prompt_tokens;
  Encoding encoding;
  const Status encoded = model.tokenizer->EncodeFull(
      {QueryOf(task, i), std::string_view(task.documents[i])}, options, &encoding);
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
                             return RerankerPrompt(task, query);
                           }));
  } else {
    for (size_t i = 0; i < task.documents.size(); ++i) {
      SKEIN_ASSIGN_OR_RETURN(Request request, EncodedPair(model, task, i));
      result.requests.push_back(std::move(request));
    }
    if (result.requests.size() > 1) SetSharedHead(0, &result.requests);
  }
  result.scores = [raw = task.raw_scores](const std::vector<ReadValues>& reads) {
    std::vector<double> scores;
    for (const ReadValues& read : reads) {
      if (read.values.size() == 2) {
        scores.push_back(SecondOfTwo(read.values, raw));
      } else {
        const double value = static_cast<double>(read.values[0]);
        scores.push_back(raw ? value : Sigmoid(value));
      }
    }
    return scores;
  };
  return result;
}

// The text that a model wants before queries or documents; empty: none.
std::string PromptNamed(const ModelTraits& traits, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto found = traits.prompts.find(name); found != traits.prompts.end()) {
      return found->second;
    }
  }
  return {};
}

Result<PairReads> EmbeddingReads(const ModelEntry& model, const PairTask& task) {
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
  for (size_t i = 0; i < task.queries.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(of_query + task.queries[i], QueryFieldOf(task, i)));
  }
  for (size_t i = 0; i < task.documents.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(of_document + task.documents[i], FieldOf(task, i)));
  }
  result.scores = [num_queries = task.queries.size()](const std::vector<ReadValues>& reads) {
    std::vector<double> scores;
    for (size_t i = num_queries; i < reads.size(); ++i) {
      const size_t query = num_queries == 1 ? 0 : i - num_queries;
      scores.push_back(Cosine(reads[query].values, reads[i].values));
    }
    return scores;
  };
  return result;
}

}  // namespace

size_t MaxPairTokens(const ModelEntry& model) {
  const ModelTraits& traits = model.traits;
  const bool reads_labels = !traits.classifies && (traits.qwen3_reranker || !traits.embeds);
  return reads_labels ? MaxLabelTokens(model) : MaxTokens(model);
}

Result<PairReads> MakePairReads(const ModelEntry& model, const PairTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, task.document_field, task.documents.size()));
  if (model.traits.classifies) return ClassifierReads(model, task);
  if (model.traits.qwen3_reranker) return RerankerReads(model, task);
  if (model.traits.embeds) return EmbeddingReads(model, task);
  return QuestionReads(model, task);
}

}  // namespace skein
