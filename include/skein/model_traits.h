#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/decision_method.h"

namespace skein {

// The prompt and the limits of a model of the package sysone. Words in braces are placeholders:
// {instructions}, {label}, {description}, {index}, {level}.
struct SysoneTraits {
  std::string base;       // the base model's type: "modernbert"
  std::string base_dir;   // the directory of its weights and its tokenizer
  bool encoder = false;   // the parts stand in an encoder's order; false: in a decoder's
  std::string bos_token;  // the first token of a decoder that has one, else empty
  int32_t max_state_tokens = 0;
  int32_t max_option_tokens = 0;
  std::array<std::string, 3> task_lines;  // for a choice, a score and a noul
  std::string question;
  std::string choice_option, score_option;
  std::array<std::string, 2> noul_labels;  // no, yes
};

// A model of the Kev family.
struct KevTraits {
  std::string base;      // the decoder's architecture: "Qwen3_5ForConditionalGeneration"
  std::string base_dir;  // the directory of its config and its tokenizer
};

// A model of the Clef family.
struct ClefTraits {
  std::string base;  // the decoder's architecture: "Qwen3_5ForConditionalGeneration"
};

// A decision model: a head reads a question's options at their markers, in one pass
// (docs/decision-models.md).
struct DecisionModelTraits {
  std::string family;        // "laya", "sysone", "kev" or "clef"
  int32_t max_len = 0;       // tokens of a question with its state; the rest of the state is cut
  int32_t usual_len = 0;     // the tokens that a step has room for, unless an option asks for more
  int32_t head_max_len = 0;  // Laya: the most tokens of the question's part
  bool parallel = false;     // options are read side by side and do not see each other
  std::array<double, 3> temperature = {1, 1, 1};  // for a choice, a score and a yes-or-no question
  // By type and number of options ("choice:3-5"). A temperature found here is used instead of
  // `temperature`.
  std::map<std::string, double> temperature_by_options;
  std::string cls_token, sep_token, mask_token;
  std::optional<SysoneTraits> sysone;  // if the family is "sysone"
  std::optional<KevTraits> kev;        // if the family is "kev"
  std::optional<ClefTraits> clef;      // if the family is "clef"

  bool is_laya() const { return !sysone && !kev && !clef; }
};

// A SPLADE model: an embedding has an element for each id of the vocabulary, and most are 0.
struct SparseTraits {
  bool documents_only = false;  // the model computes no vectors of queries
  // With documents_only, by token: a query's vector has the weights of its tokens. Empty: they are
  // not known.
  std::vector<float> query_weights;
};

// A ColBERT model (Khattab and Zaharia 2020): a text has a vector for each token. The score of a
// query and a document is the sum, over the query's vectors, of the largest product with a vector
// of the document.
struct LateInteractionTraits {
  int32_t query_marker = -1, document_marker = -1;  // the id behind the first token; -1: none
  int32_t query_length = 0, document_length = 0;    // longer texts lose their end; 0: no limit
  int32_t expansion_length = 0;       // queries are filled up to this length; 0: they are not
  int32_t expansion_id = 0;           // that fills
  bool attends_to_expansion = false;  // whether tokens attend to it
  std::vector<int32_t> skipped_ids;   // ascending: ids whose vectors documents leave out
};

// The abilities of a model, beside its size, according to its files. They decide which routes the
// server offers; no computation needs them.
struct ModelTraits {
  bool generates = true;  // a causal model with an output matrix: GenerateSpec and LabelSpec

  // EmbedSpec.
  bool embeds = false;
  int32_t embedding_size = 0;
  bool normalizes = true;  // embeddings are meant to have length 1
  // Matryoshka: the sizes that `dimensions` may request. If the list is empty, `dimensions` may
  // request every size up to embedding_size with `any_dimensions`, and none without.
  std::vector<int32_t> matryoshka_dimensions;
  bool any_dimensions = false;
  std::map<std::string, std::string> prompts;  // name -> text put before an input
  std::string default_prompt;                  // the name of one of the prompts, or empty
  std::optional<SparseTraits> sparse;          // embeddings are sparse
  std::optional<LateInteractionTraits> late_interaction;  // embeddings have a vector for each token

  // ClassifySpec.
  bool classifies = false;
  std::vector<std::string> class_labels;  // [num_classes]
  bool multi_label = false;               // probabilities by a sigmoid for each label, not by
                                          // softmax

  // DecideSpec.
  std::optional<DecisionModelTraits> decision_model;

  // Pairs of texts are encoded by the tokenizer's pair template (a cross-encoder).
  bool encodes_pairs = false;
  // Pairs of texts are put into Qwen3-Reranker's template. The score is P(yes) of a causal model,
  // or a class.
  bool qwen3_reranker = false;

  // The settings for decisions whose requests name none.
  DecisionProfile decisions;
  // The chat template writes a space before an assistant's text, so labels are searched with that
  // space in front.
  bool space_before_answer = false;
};

}  // namespace skein
