#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/decision_method.h"

namespace skein {

// The prompt and the limits of a model of the package sysone. Words in braces are replaced:
// {instructions}, {label}, {description}, {index}, {level}.
struct SysoneTraits {
  std::string base;       // the base model's type: "modernbert"
  std::string base_dir;   // where its weights and its tokenizer lie
  bool encoder = false;   // the order of the parts; else a decoder's
  std::string bos_token;  // of a decoder that begins with it, else empty
  int32_t max_state_tokens = 0;
  int32_t max_option_tokens = 0;
  std::array<std::string, 3> task_lines;  // of a choice, a score and a noul
  std::string question;
  std::string choice_option, score_option;
  std::array<std::string, 2> noul_labels;  // no, yes
};

// A model of the Kev family.
struct KevTraits {
  std::string base;      // the decoder's architecture: "Qwen3_5ForConditionalGeneration"
  std::string base_dir;  // where its config and its tokenizer lie
};

// A decision model: a head reads a question's options at their markers, in one pass
// (docs/decision-models.md).
struct DecisionModelTraits {
  std::string family;        // "laya", "sysone" or "kev"
  int32_t max_len = 0;       // tokens of a question with its state; the rest of the state is cut
  int32_t usual_len = 0;     // the tokens that a step has room for, unless an option says more
  int32_t head_max_len = 0;  // Laya: tokens of the question's part
  bool parallel = false;     // options are read side by side and do not see each other
  std::array<double, 3> temperature = {1, 1, 1};  // of a choice, a score and a yes or no
  // By type and number of options ("choice:3-5"): these go before `temperature`.
  std::map<std::string, double> temperature_by_options;
  std::string cls_token, sep_token, mask_token;
  std::optional<SysoneTraits> sysone;  // of that family
  std::optional<KevTraits> kev;        // of that family

  bool is_laya() const { return !sysone && !kev; }
};

// The abilities of a model, beside its size, according to its files. They decide which routes the
// server offers; no computation needs them.
struct ModelTraits {
  bool generates = true;  // a causal model with an output matrix: GenerateSpec and LabelSpec

  // EmbedSpec.
  bool embeds = false;
  int32_t embedding_size = 0;
  bool normalizes = true;  // embeddings are meant to have length 1
  // Matryoshka: the sizes that `dimensions` may request. If empty: every size up to embedding_size
  // with `any_dimensions`, none without.
  std::vector<int32_t> matryoshka_dimensions;
  bool any_dimensions = false;
  std::map<std::string, std::string> prompts;  // name -> text put before an input
  std::string default_prompt;                  // name of one of them, or empty

  // ClassifySpec.
  bool classifies = false;
  std::vector<std::string> class_labels;  // [num_classes]
  bool multi_label = false;               // probabilities by sigmoid each, not by softmax

  // DecideSpec.
  std::optional<DecisionModelTraits> decision_model;

  // Pairs of texts go through the tokenizer's pair template (a cross-encoder).
  bool encodes_pairs = false;
  // Pairs are asked in Qwen3-Reranker's template: P(yes) of a causal model, or a class.
  bool qwen3_reranker = false;

  // The settings for decisions, for requests that name none.
  DecisionProfile decisions;
  // The chat template writes a space before an assistant's text, so labels are searched with that
  // space first.
  bool space_before_answer = false;
};

}  // namespace skein
