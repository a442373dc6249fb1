#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "skein/decision_method.h"

namespace skein {

// What a model can answer beside its size, as its files say it. The server decides by it which
// routes a model serves; nothing here is needed to compute.
struct ModelTraits {
  bool generates = true;  // a causal model with an output matrix: GenerateSpec and LabelSpec

  // EmbedSpec.
  bool embeds = false;
  int32_t embedding_size = 0;
  bool normalizes = true;  // embeddings are meant to have length 1
  // Matryoshka: sizes that `dimensions` may ask for. Empty with `any_dimensions`: every one up to
  // embedding_size; empty without: none.
  std::vector<int32_t> matryoshka_dimensions;
  bool any_dimensions = false;
  std::map<std::string, std::string> prompts;  // name -> text put before an input
  std::string default_prompt;                  // name of one of them, or empty

  // ClassifySpec.
  bool classifies = false;
  std::vector<std::string> class_labels;  // [num_classes]
  bool multi_label = false;               // probabilities by sigmoid each, not by softmax

  // Pairs of texts go through the tokenizer's pair template (a cross-encoder).
  bool encodes_pairs = false;
  // Qwen3-Reranker's template is put around pairs: P(yes) of a causal model, or a class.
  bool qwen3_reranker = false;

  // How it is asked for decisions where a request does not say.
  DecisionProfile decisions;
  // The chat template writes a space before an assistant's text: labels are looked for so first.
  bool space_before_answer = false;
};

}  // namespace skein
