#include "server/reads/late_interaction.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "server/reads/read_inputs.h"
#include "server/reads/vectors.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

// The sum of products, of four interleaved parts.
double Product(std::span<const float> a, std::span<const float> b) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4) {
    for (size_t part = 0; part < 4; ++part) {
      sums[part] += double{a[i + part]} * double{b[i + part]};
    }
  }
  for (; i < a.size(); ++i) sums[0] += double{a[i]} * double{b[i]};
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Encodes a text, and cuts it to `most` tokens. Special tokens stay.
Status EncodeCut(const Tokenizer& tokenizer, const std::string& text, size_t most,
                 std::vector<TokenId>* ids) {
  SKEIN_RETURN_IF_ERROR(tokenizer.Encode(text, /*add_special_tokens=*/true, ids));
  if (ids->size() <= most) return Status::Ok();
  EncodeOptions options;
  options.truncation.emplace().max_length = most;
  Encoding encoding;
  const Status encoded = tokenizer.EncodeFull({text, {}}, options, &encoding);
  if (encoded.ok()) {
    *ids = std::move(encoding.ids);
  } else if (encoded.code() == StatusCode::kUnsupported) {
    ids->resize(most);  // the tokenizer adds no special tokens
  } else {
    return encoded;
  }
  return Status::Ok();
}

}  // namespace

Result<LateText> EncodeLate(const ModelEntry& model, LateSide side, std::string_view prompt,
                            std::string_view text, size_t max_tokens, const std::string& param) {
  const LateInteractionTraits& traits = *model.traits.late_interaction;
  const bool query = side == LateSide::kQuery;
  const int32_t marker = query ? traits.query_marker : traits.document_marker;
  const int32_t length = query ? traits.query_length : traits.document_length;
  if (length > 0) max_tokens = std::min(max_tokens, static_cast<size_t>(length));
  const std::string whole = std::string(prompt) + std::string(text);
  const size_t most = max_tokens - (marker >= 0 && max_tokens > 1 ? 1 : 0);
  LateText late;
  const Status encoded = EncodeCut(*model.tokenizer, whole, most, &late.ids);
  if (!encoded.ok()) return Status(encoded.code(), param + ": " + encoded.message(), param);
  if (late.ids.empty()) {
    return Status(StatusCode::kInvalidArgument, param + " is empty: it must have some text", param);
  }
  if (marker >= 0) late.ids.insert(late.ids.begin() + 1, marker);
  const auto expanded = static_cast<size_t>(query ? traits.expansion_length : 0);
  if (late.ids.size() < std::min(expanded, MaxTokens(model))) {
    if (!traits.attends_to_expansion) late.num_attended = static_cast<int32_t>(late.ids.size());
    late.ids.resize(std::min(expanded, MaxTokens(model)), traits.expansion_id);
  }
  return late;
}

std::vector<float> InteractingVectors(const LateInteractionTraits& traits, LateSide side,
                                      std::span<const TokenId> ids, std::span<const float> values) {
  const size_t width = values.size() / ids.size();
  std::vector<float> vectors;
  vectors.reserve(values.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (side == LateSide::kDocument && std::ranges::binary_search(traits.skipped_ids, ids[i])) {
      continue;
    }
    const std::span<const float> vector = values.subspan(i * width, width);
    vectors.insert(vectors.end(), vector.begin(), vector.end());
  }
  return vectors;
}

void NormalizeEach(std::span<float> vectors, size_t width) {
  for (size_t i = 0; i < vectors.size(); i += width) Normalize(vectors.subspan(i, width));
}

double MaxSim(std::span<const float> query, std::span<const float> document, size_t width) {
  if (document.empty()) return 0;
  double sum = 0;
  for (size_t i = 0; i < query.size(); i += width) {
    double most = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < document.size(); j += width) {
      most = std::max(most, Product(query.subspan(i, width), document.subspan(j, width)));
    }
    sum += most;
  }
  return sum;
}

}  // namespace skein
