#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// A ColBERT model according to its files: those of Stanford's ColBERT (HF_ColBERT and
// artifact.metadata), of PyLate, or of sentence-transformers (config_sentence_transformers.json).
struct ColbertConfig {
  // The token behind the first one of a query, and of a document, as it is spelled. A spelling
  // without such a token is text in front of the query or document. Empty: none.
  std::string query_marker, document_marker;
  // Longer texts lose their end; 0: not given.
  int32_t query_length = 0, document_length = 0;
  int32_t expansion_length = 0;             // queries are filled up to this length; 0: they are not
  std::string expansion_token;              // that fills; empty: the tokenizer's mask token
  bool attends_to_expansion = false;        // whether tokens attend to these tokens
  std::vector<std::string> skipped_tokens;  // whose vectors documents leave out
};

// Returns nullopt for models of other kinds. Fails with kUnsupported, naming the member, if this
// engine would compute the vectors differently.
Result<std::optional<ColbertConfig>> LoadColbertConfig(const std::string& model_dir);

// Gives the model the head of a ColBERT model. Fails with kUnsupported if the model is no encoder,
// or one whose attention cannot leave tokens out.
Status UseTokenVectors(const std::string& model_dir, ModelConfig* config);

}  // namespace skein
