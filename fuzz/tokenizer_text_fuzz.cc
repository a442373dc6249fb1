#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "text/unicode/utf8.h"
#include "tokenizers.h"

namespace skein::fuzz {
namespace {

std::string Streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip) {
  const auto stream = tokenizer.NewTextStream(skip);
  std::string text;
  for (const TokenId id : ids) {
    stream->Push(id, &text);
    SKEIN_CHECK(IsValidUtf8(text));  // whole characters alone
  }
  stream->Finish(&text);
  return text;
}

}  // namespace

// One byte chooses a tokenizer of the tests, one says how special tokens are read; the rest is a
// text. The fast path gives the ids of the aligned pipeline, which the tests hold against the
// reference. A decoding in pieces is that of the whole.
void FuzzTokenizerText(Bytes data) {
  constexpr size_t kMostBytes = 2048;
  if (data.size() < 2 || data.size() > kMostBytes) return;
  const Tokenizer& tokenizer = TokenizerOfTests(data[0]);
  const bool add_special = data[1] & 1, as_text = data[1] & 2;
  const std::string_view text = TextOf(data.subspan(2));
  std::vector<TokenId> ids;
  const Status status = tokenizer.EncodeWith(text, {.all = as_text, .at = {}}, add_special, &ids);
  SKEIN_CHECK(status.ok() || !IsValidUtf8(text) || status.code() == StatusCode::kInvalidArgument);
  Encoding slow;
  const EncodeOptions options = {.add_special_tokens = add_special,
                                 .with_offsets = true,
                                 .truncation = std::nullopt,
                                 .special_as_text = as_text};
  const Status slow_status = tokenizer.EncodeFull({text, std::nullopt}, options, &slow);
  SKEIN_CHECK(slow_status.ok() == status.ok());
  if (!status.ok()) return;
  SKEIN_CHECK(slow.ids == ids && slow.offsets.size() == ids.size());
  const size_t num_chars =
      static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  for (const TokenOffsets& offsets : slow.offsets) {
    SKEIN_CHECK(offsets.begin <= offsets.end && offsets.end <= num_chars);
  }
  if (tokenizer.max_bytes_per_token() > 0 && !add_special) {
    SKEIN_CHECK(text.size() <= ids.size() * tokenizer.max_bytes_per_token());
  }
  for (const bool skip : {false, true}) {
    SKEIN_CHECK(Streamed(tokenizer, ids, skip) == tokenizer.Decode(ids, skip));
  }
}

}  // namespace skein::fuzz
