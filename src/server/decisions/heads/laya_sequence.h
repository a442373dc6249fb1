#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "server/decisions/heads/head_sequence.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

struct LayaBudgets {
  int32_t max_len = 0;
  int32_t head_max_len = 0;
};

// The texts of a question's options in the model's order: no comes first for a predicate.
std::vector<std::string> LayaOptions(const DecisionQuestion& question);

// Encodes questions about one state in the format on which Laya was trained:
//
//   [CLS] type question: instructions [SEP] [MASK] option [MASK] option ... [SEP] state [SEP]
//   |-------------------- at most about head_max_len ---------------------|
//   |--------------------------------- at most max_len -----------------------------------|
//
// The outputs for the options are read at [MASK], the output for the whole question at [CLS]. One
// thread; the model outlives the encoder.
class LayaEncoder {
 public:
  // kInvalidArgument if the tokenizer lacks a special token of the model. REQUIRES: a Laya model.
  static Result<LayaEncoder> Make(const ModelEntry& model, const LayaBudgets& budgets);

  // The tokens of a state, not cut. kInvalidArgument for invalid UTF-8.
  Result<std::vector<TokenId>> State(std::string_view text) const;

  // The sequence of a question. A state that does not fit is cut at its end or, with `keep_end`, at
  // its beginning. kInvalidArgument if not all markers fit into max_len; the caller puts the
  // field's name before the message.
  Result<HeadSequence> Sequence(const DecisionQuestion& question, std::span<const TokenId> state,
                                bool keep_end) const;

 private:
  explicit LayaEncoder(const ModelEntry& model) : model_(&model) {}
  Status Encode(std::string_view text, std::vector<TokenId>* ids) const;

  const ModelEntry* model_;
  LayaBudgets budgets_;
  std::string_view mask_text_;
  TokenId cls_ = 0, sep_ = 0, mask_ = 0;
};

}  // namespace skein
