#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// The side of a text in a late interaction.
enum class LateSide { kQuery, kDocument };

// A text in the form in which a ColBERT model reads it.
struct LateText {
  std::vector<TokenId> ids;
  std::optional<int32_t> num_attended;  // Request::num_attended
};

// Encodes a text of a ColBERT model: with its marker behind the first token, cut to the length of
// its side and to `max_tokens`, and, if it is a query, filled up. `prompt` precedes the text;
// `param` names it in errors.
Result<LateText> EncodeLate(const ModelEntry& model, LateSide side, std::string_view prompt,
                            std::string_view text, size_t max_tokens, const std::string& param);

// The vectors that take part in the interaction, one behind the other: those of a document leave
// out the model's skipped tokens. `values` are the vectors of all `ids`.
std::vector<float> InteractingVectors(const LateInteractionTraits& traits, LateSide side,
                                      std::span<const TokenId> ids, std::span<const float> values);

// Scales each vector [width] to length 1.
void NormalizeEach(std::span<float> vectors, size_t width);

// The sum, over the vectors [width] of a query, of the largest product with a vector of the
// document, in binary64. 0 if the document has none.
double MaxSim(std::span<const float> query, std::span<const float> document, size_t width);

}  // namespace skein
