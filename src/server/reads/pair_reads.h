#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_reads.h"
#include "server/model_registry.h"
#include "server/reads/read_session.h"
#include "skein/request.h"

namespace skein {

// How well documents answer queries, asked of whatever kind of model there is:
//
//   classification head     the pair in the tokenizer's pair template: sigmoid of one output, or
//                           the second class' probability of two
//   Qwen3-Reranker          its own template: P(yes) of {no, yes}
//   embedding model         the cosine of two embeddings
//   other causal models     by the model's profile or the request: the relevance question of
//                           docs/decisions.md, P(yes); or how much likelier the document makes the
//                           query (Sachan et al. 2022, "Improving Passage Retrieval with Zero-Shot
//                           Question Generation", section 2.3)
struct PairTask {
  Request base;
  std::string instruction;           // for models that are asked in words; empty: the default
  std::vector<std::string> queries;  // [1] or [documents.size()]
  std::vector<std::string> documents;
  std::string query_field;     // for messages
  std::string document_field;  // of document i: document_field[i]
  // Longer prompts lose the end of their document (with a pair template: of the longer text).
  // nullopt: they are refused.
  std::optional<size_t> max_prompt_tokens;
  bool raw_scores = false;  // before sigmoid or softmax
  MethodOverride method;    // of causal models without a template of their own
};

struct PairReads {
  std::vector<Request> requests;
  std::vector<bool> charged;  // as ReadSession::Spec::charged
  // The scores [documents.size()] that the answers to `requests` say.
  std::function<std::vector<double>(const ReadResults& results)> scores;
};

// Tokens of the longest prompt that `model` takes of a pair, or of one side of it.
size_t MaxPairTokens(const ModelEntry& model);

Result<PairReads> MakePairReads(const ModelEntry& model, const PairTask& task);

}  // namespace skein
