#include "server/generation/logprobs_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "text/unicode/utf8.h"

namespace skein {
namespace {

// The log-probability of an impossible token, as in vLLM: JSON has no infinity.
constexpr double kLogprobMin = -9999.0;

double Finite(float logprob) { return std::isfinite(logprob) ? logprob : kLogprobMin; }

int64_t NumCharacters(std::string_view text) {
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

std::span<const TokenLogprob> First(const std::vector<TokenLogprob>& entries, int32_t count) {
  return std::span(entries).first(std::min(entries.size(), static_cast<size_t>(count)));
}

// Appends a member without searching for its name. REQUIRES: the object has no member of this name.
void Append(std::string name, Json value, Json* object) {
  object->get_ref<Json::object_t&>().emplace_back(std::move(name), std::move(value));
}

Json TopOfCompletion(const Tokenizer& tokenizer, const TokenLogprob& chosen,
                     std::span<const TokenLogprob> top, std::span<const TokenLogprob> named,
                     bool as_ids) {
  Json json = Json::object();
  std::unordered_set<std::string> names;
  const auto add = [&](const TokenLogprob& entry) {
    const std::string bytes = tokenizer.TokenBytes(entry.token);
    std::string name = CompletionSpelling(bytes, entry.token, as_ids);
    if (!names.insert(name).second) return;  // the likelier token of the same name is kept
    Append(std::move(name), Finite(entry.logprob), &json);
  };
  for (const TokenLogprob& entry : top) add(entry);
  add(chosen);
  for (const TokenLogprob& entry : named) add(entry);
  return json;
}

// Appends the tokens of the prompt. An offset is the position of a token's text in the prompt's
// text. A special token has no text there unless the prompt's text spells it out.
void AppendPrompt(const Tokenizer& tokenizer, const EchoedPrompt& prompt, int32_t num_top,
                  bool as_ids, int64_t text_offset, Json* json) {
  const auto stream = tokenizer.NewTextStream(/*skip_special_tokens=*/true);
  auto next = prompt.logprobs.begin();
  std::string piece;
  size_t at = 0;  // byte position in the prompt's text
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    const TokenId id = prompt.ids[i];
    (*json)["text_offset"].push_back(text_offset);
    piece.clear();
    stream->Push(id, &piece);
    if (tokenizer.IsSpecial(id)) {
      const std::string written = tokenizer.TokenBytes(id);
      if (prompt.text.substr(std::min(at, prompt.text.size())).starts_with(written)) {
        piece += written;
      }
    }
    at += piece.size();
    text_offset += NumCharacters(piece);
    (*json)["tokens"].push_back(CompletionSpelling(tokenizer.TokenBytes(id), id, as_ids));
    if (next != prompt.logprobs.end() && next->position == static_cast<int32_t>(i)) {
      (*json)["token_logprobs"].push_back(Finite(next->chosen.logprob));
      (*json)["top_logprobs"].push_back(
          TopOfCompletion(tokenizer, next->chosen, First(next->top_logprobs, num_top), {}, as_ids));
      ++next;
    } else {
      (*json)["token_logprobs"].push_back(nullptr);
      (*json)["top_logprobs"].push_back(nullptr);
    }
  }
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

Json CompletionLogprobs(const Tokenizer& tokenizer, const EchoedPrompt* prompt,
                        const std::vector<OutputToken>& tokens, int32_t num_top, bool as_ids,
                        bool skip_special_tokens, int64_t* text_offset) {
  Json json;
  json["text_offset"] = Json::array();
  json["token_logprobs"] = Json::array();
  json["tokens"] = Json::array();
  json["top_logprobs"] = Json::array();
  if (prompt != nullptr) {
    AppendPrompt(tokenizer, *prompt, num_top, as_ids, *text_offset, &json);
    *text_offset += NumCharacters(prompt->text);
  }
  for (const OutputToken& token : tokens) {
    const std::string bytes = tokenizer.TokenBytes(token.token);
    json["text_offset"].push_back(*text_offset);
    const bool in_text = !skip_special_tokens || !tokenizer.IsSpecial(token.token);
    if (in_text) *text_offset += NumCharacters(bytes);
    json["token_logprobs"].push_back(Finite(token.chosen.logprob));
    json["tokens"].push_back(CompletionSpelling(bytes, token.token, as_ids));
    const auto top = First(token.top_logprobs, num_top);
    json["top_logprobs"].push_back(
        TopOfCompletion(tokenizer, token.chosen, top, token.named_logprobs, as_ids));
  }
  return json;
}

Json PromptLogprobsJson(const Tokenizer& tokenizer, size_t num_tokens,
                        std::span<const PromptLogprob> logprobs, int32_t num_top) {
  Json list = Json::array();
  std::unordered_set<TokenId> known;
  const auto add = [&](const TokenLogprob& entry, Json* object) {
    if (!known.insert(entry.token).second) return;
    Json json;
    json["logprob"] = Finite(entry.logprob);
    json["rank"] = entry.rank;
    json["decoded_token"] = tokenizer.TokenBytes(entry.token);
    Append(fmt::format("{}", entry.token), std::move(json), object);
  };
  for (const PromptLogprob& position : logprobs) {
    while (list.size() < static_cast<size_t>(position.position)) list.push_back(nullptr);
    Json object = Json::object();
    known.clear();
    add(position.chosen, &object);
    for (const TokenLogprob& entry : First(position.top_logprobs, num_top)) add(entry, &object);
    list.push_back(std::move(object));
  }
  while (list.size() < num_tokens) list.push_back(nullptr);
  return list;
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
    for (const TokenLogprob& named : token.named_logprobs) {
      const bool known = std::ranges::any_of(
          token.top_logprobs, [&](const TokenLogprob& top) { return top.token == named.token; });
      if (!known) entry["top_logprobs"].push_back(ChatEntry(tokenizer, named, as_ids));
    }
    json["content"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace skein
