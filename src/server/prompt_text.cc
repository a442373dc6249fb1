#include "server/prompt_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace skein {
namespace {

constexpr std::string_view kMark = "\xEF\xB7\x91";  // U+FDD1

// The number of bytes of the character at `pos` of valid UTF-8; 1 for other bytes.
size_t CharacterBytes(std::string_view text, size_t pos) {
  size_t end = pos + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end - pos;
}

// Appends `text`, with every mark in it doubled.
void AppendDoubled(std::string_view text, std::string* out) {
  for (size_t pos = 0; pos < text.size();) {
    const size_t at = std::min(text.find(kMark, pos), text.size());
    out->append(text.substr(pos, at - pos));
    if (at < text.size()) out->append(kMark).append(kMark);
    pos = at + kMark.size();
  }
}

// Removes the marks. `*positions` gets the position of each marked character.
std::string Unmarked(std::string_view text, std::vector<size_t>* positions) {
  std::string plain;
  plain.reserve(text.size());
  size_t last = 0;  // the position of the last character of `plain`
  for (size_t pos = 0; pos < text.size();) {
    if (!text.substr(pos).starts_with(kMark)) {
      const size_t bytes = CharacterBytes(text, pos);
      last = plain.size();
      plain.append(text.substr(pos, bytes));
      pos += bytes;
      continue;
    }
    pos += kMark.size();
    if (text.substr(pos).starts_with(kMark)) {
      last = plain.size();
      plain.append(kMark);
      pos += kMark.size();
    } else {
      positions->push_back(last);
    }
  }
  return plain;
}

}  // namespace

std::string PlainText(const ModelEntry& model, std::string_view text) {
  if (model.user_special_tokens == UserSpecialTokens::kParse) return std::string(text);
  const std::vector<size_t> positions = model.tokenizer->FindSpecialTokens(text);
  if (positions.empty() && text.find(kMark) == text.npos) return std::string(text);
  std::string marked;
  size_t done = 0;
  for (const size_t at : positions) {
    const size_t behind = at + CharacterBytes(text, at);
    AppendDoubled(text.substr(done, behind - done), &marked);
    marked.append(kMark);
    done = behind;
  }
  AppendDoubled(text.substr(done), &marked);
  return marked;
}

std::string RawText(const ModelEntry& model, std::string_view text) {
  std::string marked;
  if (model.user_special_tokens == UserSpecialTokens::kParse) return std::string(text);
  AppendDoubled(text, &marked);
  return marked;
}

Status CheckTextBytes(const Tokenizer& tokenizer, size_t num_bytes, size_t max_tokens) {
  const size_t bytes_max = tokenizer.max_bytes_per_token();
  if (bytes_max == 0 || max_tokens == 0 || num_bytes / bytes_max < max_tokens) return Status::Ok();
  return {
      StatusCode::kInvalidArgument,
      fmt::format("the text has {} bytes, which is more than {} tokens of at most {} bytes, the "
                  "most that this model takes: shorten it",
                  num_bytes, max_tokens, bytes_max)};
}

Status EncodePrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                    size_t max_tokens, std::vector<TokenId>* ids) {
  const Tokenizer& tokenizer = *model.tokenizer;
  SKEIN_RETURN_IF_ERROR(CheckTextBytes(tokenizer, text.size(), max_tokens));
  const bool parses = model.user_special_tokens == UserSpecialTokens::kParse;
  if (parses || text.find(kMark) == text.npos) {
    return tokenizer.Encode(text, add_special_tokens, ids);
  }
  std::vector<size_t> positions;
  const std::string plain = Unmarked(text, &positions);
  return tokenizer.EncodeWith(plain, {.at = positions}, add_special_tokens, ids);
}

Status EncodeRawPrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                       size_t max_tokens, std::vector<TokenId>* ids) {
  SKEIN_RETURN_IF_ERROR(CheckTextBytes(*model.tokenizer, text.size(), max_tokens));
  return model.tokenizer->Encode(text, add_special_tokens, ids);
}

}  // namespace skein
