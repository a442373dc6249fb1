#pragma once

#include <string>

#include "base/result.h"
#include "model/config/encoders/colbert_config.h"
#include "skein/model_traits.h"
#include "text/tokenizer.h"

namespace skein {

// Finds the ids of the tokens that a ColBERT model's files name, and sets traits->late_interaction.
// A marker that is no token becomes the beginning of the prompt "query" or "document". Tokens to be
// skipped that the tokenizer does not have are left out. Fails with kInvalidArgument if the token
// that fills queries is not in the vocabulary.
Status SetLateInteraction(const ColbertConfig& colbert, const Tokenizer& tokenizer,
                          const std::string& tokenizer_dir, ModelTraits* traits);

}  // namespace skein
