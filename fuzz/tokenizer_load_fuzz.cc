#include <algorithm>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "text/tokenizer.h"

namespace skein::fuzz {
namespace {

constexpr TokenId kFewIds = 64;
constexpr std::string_view kTexts[] = {"", "Hello, world!",
                                       " \n\t2024 naïve 北京 \U0001F600<s>[MASK]▁"};

}  // namespace

// tokenizer.json, the mark, tokenizer_config.json (none: empty). A tokenizer that loads encodes and
// decodes, and names only tokens that it has.
void FuzzTokenizerLoad(Bytes data) {
  const auto [tokenizer_json, config] = PartsOf(TextOf(data));
  WriteFile("tokenizer.json", tokenizer_json);
  config.empty() ? RemoveFile("tokenizer_config.json") : WriteFile("tokenizer_config.json", config);
  const auto loaded = Tokenizer::Load(Folder().string());
  if (!loaded.ok()) {
    SKEIN_CHECK(!loaded.status().message().empty());
    return;
  }
  const Tokenizer& tokenizer = *loaded.value();
  const TokenId vocab_size = tokenizer.vocab_size();
  for (const std::string_view text : kTexts) {
    std::vector<TokenId> ids;
    if (!tokenizer.Encode(text, /*add_special_tokens=*/true, &ids).ok()) continue;
    SKEIN_CHECK(std::ranges::all_of(ids, [&](TokenId id) { return id >= 0 && id < vocab_size; }));
    (void)tokenizer.Decode(ids, /*skip_special_tokens=*/false);
    (void)tokenizer.Decode(ids, /*skip_special_tokens=*/true);
  }
  for (TokenId id = -1; id <= std::min(vocab_size, kFewIds); ++id) {
    (void)tokenizer.TokenBytes(id);
    (void)tokenizer.IsSpecial(id);
    (void)tokenizer.Decode({&id, 1}, false);
  }
  for (const auto id : {tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.pad_id()}) {
    SKEIN_CHECK(!id || (*id >= 0 && *id < vocab_size));
  }
}

}  // namespace skein::fuzz
