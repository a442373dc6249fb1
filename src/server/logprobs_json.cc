#include "server/logprobs_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "text/utf8.h"

namespace skein {
namespace {

// JSON has no infinity; a token that cannot come has this log-probability, as in vLLM.
constexpr double kLogprobMin = -9999.0;

double Finite(float logprob) { return std::isfinite(logprob) ? logprob : kLogprobMin; }

int64_t NumCharacters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
  });
}

std::string IdSpelling(TokenId id) { return fmt::format("token_id:{}", id); }

std::string CompletionSpelling(const std::string& bytes, TokenId id, bool as_id) {
  if (as_id) return IdSpelling(id);
  if (IsValidUtf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (unsigned char byte : bytes) text += fmt::format("\\x{:02x}", byte);
  return text;
}

Json ChatEntry(const Tokenizer& tokenizer, const TokenLogprob& entry, bool as_id) {
  const std::string bytes = tokenizer.TokenBytes(entry.token);
  Json json;
  json["token"] = as_id ? IdSpelling(entry.token) : bytes;
  json["logprob"] = Finite(entry.logprob);
  json["bytes"] = Json::array();
  for (unsigned char byte : bytes) json["bytes"].push_back(byte);
  return json;
}

}  // namespace

Json CompletionLogprobs(const Tokenizer& tokenizer, const std::vector<OutputToken>& tokens,
                        bool as_ids, int64_t* text_offset) {
  Json json;
  json["text_offset"] = Json::array();
  json["token_logprobs"] = Json::array();
  json["tokens"] = Json::array();
  json["top_logprobs"] = Json::array();
  for (const OutputToken& token : tokens) {
    const std::string bytes = tokenizer.TokenBytes(token.token);
    const std::string spelling = CompletionSpelling(bytes, token.token, as_ids);
    json["text_offset"].push_back(*text_offset);
    *text_offset += NumCharacters(bytes);
    json["token_logprobs"].push_back(Finite(token.chosen.logprob));
    json["tokens"].push_back(spelling);
    Json top = Json::object();
    for (const TokenLogprob& entry : token.top_logprobs) {
      const std::string name =
          CompletionSpelling(tokenizer.TokenBytes(entry.token), entry.token, as_ids);
      if (!top.contains(name)) top[name] = Finite(entry.logprob);  // the likelier one stays
    }
    if (!top.contains(spelling)) top[spelling] = Finite(token.chosen.logprob);
    json["top_logprobs"].push_back(std::move(top));
  }
  return json;
}

Json ChatLogprobs(const Tokenizer& tokenizer, const std::vector<OutputToken>& tokens, bool as_ids) {
  Json json;
  json["content"] = Json::array();
  for (const OutputToken& token : tokens) {
    Json entry = ChatEntry(tokenizer, token.chosen, as_ids);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : token.top_logprobs) {
      entry["top_logprobs"].push_back(ChatEntry(tokenizer, top, as_ids));
    }
    json["content"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace skein
