#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "server/decisions/heads/head_sequence.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// The text of a JSON value as Kev reads it: a string unchanged, a list as lines with a dash, an
// object as lines "name: text". Nested values are indented.
std::string KevText(const Json& value);

// The texts of a question's options in the model's order: no comes first for a predicate.
std::vector<std::string> KevOptions(const DecisionQuestion& question);

// The text with every "<|name|>" spelled with broken bars, which no tokenizer reads as a special
// token. So a caller cannot write a delimiter.
std::string WithoutDelimiters(std::string_view text);

// Encodes questions about one state in the format on which Kev was trained:
//
//   <|fim_prefix|> state <|fim_middle|> instructions
//   |--- shared by all questions ---|
//       <|box_start|> option <|box_end|> <|box_start|> option <|box_end|> ... <|fim_suffix|>
//
// The outputs for the options are read at <|box_end|>, the output for the question at
// <|fim_suffix|>. Nothing is cut. One thread; the model outlives the encoder.
class KevEncoder {
 public:
  // kInvalidArgument if the tokenizer lacks a delimiter. REQUIRES: a Kev model.
  static Result<KevEncoder> Make(const ModelEntry& model);

  // The tokens of a state, behind its delimiter. kInvalidArgument for invalid UTF-8.
  Result<std::vector<TokenId>> State(std::string_view text) const;

  // The sequence of a question.
  Result<HeadSequence> Sequence(const DecisionQuestion& question,
                                std::span<const TokenId> state) const;

 private:
  enum Delimiter { kState, kQuestion, kOption, kOptionEnd, kDecide, kNumDelimiters };

  explicit KevEncoder(const ModelEntry& model) : model_(&model) {}
  // Appends a delimiter and a caller's text.
  Status Append(Delimiter before, std::string_view text, std::vector<TokenId>* ids) const;

  const ModelEntry* model_;
  std::array<TokenId, kNumDelimiters> delimiters_ = {};
};

}  // namespace skein
