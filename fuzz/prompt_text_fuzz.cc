#include <algorithm>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "server/prompt_text.h"
#include "text/unicode/utf8.h"
#include "tokenizers.h"

namespace skein::fuzz {
namespace {}  // namespace

// One byte chooses a tokenizer; the rest is a user's text, of which no part becomes a special
// token, wherever it stands in a prompt.
void FuzzPromptText(Bytes data) {
  constexpr size_t kMostBytes = 1024;
  if (data.empty() || data.size() > kMostBytes) return;
  const Tokenizer& tokenizer = TokenizerOfTests(data[0]);
  const std::string_view text = TextOf(data.subspan(1));
  if (!IsValidUtf8(text)) return;
  ModelEntry model;
  model.tokenizer = &tokenizer;
  std::vector<TokenId> ids, plain;
  SKEIN_CHECK(EncodePrompt(model, PlainText(model, text), false, 0, &ids).ok());
  SKEIN_CHECK(std::ranges::none_of(ids, [&](TokenId id) { return tokenizer.IsSpecial(id); }) ||
              // The unknown token of a vocabulary without bytes.
              tokenizer.max_bytes_per_token() == 0);
  SKEIN_CHECK(tokenizer.EncodeWith(text, {.all = true, .at = {}}, false, &plain).ok());
  SKEIN_CHECK(ids == plain);
  // A text that may hold special tokens comes through its own marks unchanged.
  std::vector<TokenId> raw, parsed;
  SKEIN_CHECK(EncodePrompt(model, RawText(model, text), false, 0, &raw).ok());
  SKEIN_CHECK(tokenizer.Encode(text, false, &parsed).ok());
  SKEIN_CHECK(raw == parsed);
}

}  // namespace skein::fuzz
