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

// The texts of a question's options in the model's order: a predicate's no comes first.
std::vector<std::string> SysoneOptions(const SysoneTraits& traits,
                                       const DecisionQuestion& question);

// Encodes questions about one state as the package sysone does. An encoder reads
//
//   [CLS] task, question [SEP] [MASK] option [MASK] option ... [SEP] state [SEP]
//
// at [CLS] and each [MASK]; a decoder
//
//   [BOS] task, question, empty line, state, line feed, <option>option</option> ... The answer is:
//
// at the end of each option's own text and of all. The parts are encoded one by one. An option has
// at most max_option_tokens, a state max_state_tokens, and all max_len: the end of the state is
// cut. One thread; the model outlives it.
class SysoneEncoder {
 public:
  // kInvalidArgument if the tokenizer lacks a special token of the model. REQUIRES: a sysone model.
  static Result<SysoneEncoder> Make(const ModelEntry& model);

  // The tokens of a state, uncut. kInvalidArgument for invalid UTF-8.
  Result<std::vector<TokenId>> State(std::string_view text) const;

  // The sequence of a question. kInvalidArgument if it does not fit into max_len without a state;
  // the message begins behind the field.
  Result<HeadSequence> Sequence(const DecisionQuestion& question,
                                std::span<const TokenId> state) const;

 private:
  explicit SysoneEncoder(const ModelEntry& model)
      : model_(&model), traits_(&*model.traits.decision_model->sysone) {}
  Status MakeParts();
  void AddOptions(const std::vector<std::vector<TokenId>>& options, HeadSequence* sequence) const;
  // Puts the parts in the order of an encoder, or of a decoder.
  HeadSequence Arrange(std::span<const TokenId> head, std::span<const TokenId> state,
                       const std::vector<std::vector<TokenId>>& options) const;

  const ModelEntry* model_;
  const SysoneTraits* traits_;
  std::vector<TokenId> begin_;          // [CLS] or [BOS], or nothing
  std::vector<TokenId> separator_;      // [SEP] of an encoder
  std::vector<TokenId> open_, close_;   // around an option
  std::vector<TokenId> gap_, newline_;  // around the state of a decoder
  std::vector<TokenId> cue_;            // of a decoder
};

}  // namespace skein
