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

// The texts of a question's options in the model's order: no comes first for a predicate.
std::vector<std::string> SysoneOptions(const SysoneTraits& traits,
                                       const DecisionQuestion& question);

// Encodes questions about one state as the Python package sysone does. An encoder model reads
//
//   [CLS] task, question [SEP] [MASK] option [MASK] option ... [SEP] state [SEP]
//
// and its outputs are taken at [CLS] and each [MASK]. A decoder model reads
//
//   [BOS] task, question, empty line, state, line feed, <option>option</option> ... The answer is:
//
// and its outputs are taken at the end of each option's text and at the end of the sequence. The
// parts are encoded one by one. An option has at most max_option_tokens, a state at most
// max_state_tokens, and the sequence at most max_len tokens: the end of the state is cut. One
// thread; the model outlives the encoder.
class SysoneEncoder {
 public:
  // kInvalidArgument if the tokenizer lacks a special token of the model. REQUIRES: a sysone model.
  static Result<SysoneEncoder> Make(const ModelEntry& model);

  // The tokens of a state, not cut. kInvalidArgument for invalid UTF-8.
  Result<std::vector<TokenId>> State(std::string_view text) const;

  // The sequence of a question. kInvalidArgument if the question alone does not fit into max_len;
  // the caller puts the field's name before the message.
  Result<HeadSequence> Sequence(const DecisionQuestion& question,
                                std::span<const TokenId> state) const;

 private:
  explicit SysoneEncoder(const ModelEntry& model)
      : model_(&model), traits_(&*model.traits.decision_model->sysone) {}
  Status MakeParts();
  void AddOptions(const std::vector<std::vector<TokenId>>& options, HeadSequence* sequence) const;
  // Orders the parts as an encoder or a decoder reads them.
  HeadSequence Arrange(std::span<const TokenId> head, std::span<const TokenId> state,
                       const std::vector<std::vector<TokenId>>& options) const;

  const ModelEntry* model_;
  const SysoneTraits* traits_;
  std::vector<TokenId> begin_;          // [CLS] or [BOS], or nothing
  std::vector<TokenId> separator_;      // [SEP]; only for an encoder
  std::vector<TokenId> open_, close_;   // around an option
  std::vector<TokenId> gap_, newline_;  // around the state; only for a decoder
  std::vector<TokenId> cue_;            // only for a decoder
};

}  // namespace skein
