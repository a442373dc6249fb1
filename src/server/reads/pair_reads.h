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

// Scores documents for queries, by a method that depends on the kind of model:
//
//   classification head     the pair in the tokenizer's pair template: sigmoid of a single
//                           output, or the probability of the second of two classes
//   Qwen3-Reranker          its own template: P(yes) of {no, yes}, or of its classes "yes" and "no"
//   embedding model         the cosine of two embeddings; the product of sparse ones
//   ColBERT model           the late interaction of their tokens' vectors
//   other causal models     by the model's profile or the request: P(yes) of the relevance
//                           question of docs/decisions.md, or how much likelier the document makes
//                           the query (Sachan et al. 2022, "Improving Passage Retrieval with
//                           Zero-Shot Question Generation", section 2.3)
struct PairTask {
  Request base;
  std::string instruction;           // for models whose prompt has one; empty: the default
  std::vector<std::string> queries;  // [1] or [documents.size()]
  std::vector<std::string> documents;
  std::string query_field;     // for messages
  std::string document_field;  // names document i in messages: document_field[i]
  // A longer prompt loses the end of its document (with a pair template, the end of the longer
  // text). nullopt: longer prompts are refused.
  std::optional<size_t> max_prompt_tokens;
  bool raw_scores = false;  // scores before sigmoid or softmax
  MethodOverride method;    // for causal models without a template of their own
};

struct PairReads {
  std::vector<Request> requests;
  std::vector<bool> charged;  // see ReadSession::Spec::charged
  // Computes the scores [documents.size()] from the answers to `requests`.
  std::function<std::vector<double>(const ReadResults& results)> scores;
};

// The number of tokens of the longest prompt that `model` accepts for a pair, or for one side of a
// pair.
size_t MaxPairTokens(const ModelEntry& model);

// Fails with kResourceExhausted, before it encodes, if the requests would wait too long.
Result<PairReads> MakePairReads(const ModelEntry& model, const PairTask& task);

}  // namespace skein
