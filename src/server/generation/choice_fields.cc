#include "server/generation/choice_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace skein {
namespace {

// The field that holds the texts, and its name in errors.
struct ChoiceField {
  std::string name;
  const Json* texts = nullptr;  // null: none
};

ChoiceField FindTexts(FieldReader* reader) {
  if (const Json* texts = reader->Find("guided_choice")) {
    if (reader->Has("structured_outputs")) {
      reader->Refuse("structured_outputs",
                     "structured_outputs is not allowed beside guided_choice, its older form");
      return {};
    }
    return {"guided_choice", texts};
  }
  const Json* object = reader->Object("structured_outputs");
  if (object == nullptr) return {};
  return {"structured_outputs.choice", FieldReader(*object).Find("choice")};
}

bool IsWritten(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
               const std::string& text) {
  std::string bytes;
  for (TokenId id : ids) {
    if (tokenizer.IsSpecial(id)) return false;
    bytes += tokenizer.TokenBytes(id);
  }
  return bytes == text;
}

// The tokens whose text, behind other text, is exactly `text`, without special tokens; empty if the
// tokenizer has none. Some tokenizers put a space before the beginning of a text, so a line break
// before it is tried, too.
std::vector<TokenId> TokensOf(const Tokenizer& tokenizer, const std::string& text) {
  const auto encode = [&](const std::string& plain, std::vector<TokenId>* out) {
    return tokenizer.EncodeWith(plain, {.all = true}, /*add_special_tokens=*/false, out).ok();
  };
  std::vector<TokenId> ids;
  if (!encode(text, &ids)) return {};
  if (IsWritten(tokenizer, ids, text)) return ids;
  const std::string anchor = "\n";
  std::vector<TokenId> head, whole;
  if (!encode(anchor, &head) || !encode(anchor + text, &whole) || whole.size() <= head.size() ||
      !std::equal(head.begin(), head.end(), whole.begin())) {
    return {};
  }
  ids.assign(whole.begin() + static_cast<std::ptrdiff_t>(head.size()), whole.end());
  if (IsWritten(tokenizer, ids, text)) return ids;
  return {};
}

// Appends an end token to each choice that is the beginning of another choice. The shorter answer
// then differs from the beginning of the longer one.
bool EndThoseThatOthersBeginWith(const ModelEntry& model,
                                 std::vector<std::vector<TokenId>>* choices) {
  const std::vector<TokenId>& ends = model.defaults.eos_token_ids;
  // A model with several end tokens ends its turns with its tokenizer's end token.
  const std::optional<TokenId> own = model.tokenizer->eos_id();
  const bool has_own = own && std::ranges::find(ends, *own) != ends.end();
  const std::vector<std::vector<TokenId>> plain = *choices;
  for (std::vector<TokenId>& choice : *choices) {
    const bool goes_on = std::any_of(plain.begin(), plain.end(), [&](const auto& other) {
      return other.size() > choice.size() &&
             std::equal(choice.begin(), choice.end(), other.begin());
    });
    if (!goes_on) continue;
    if (ends.empty()) return false;
    choice.push_back(has_own ? *own : ends.front());
  }
  return true;
}

}  // namespace

std::vector<std::vector<TokenId>> ReadChoices(FieldReader* reader, const ModelEntry& model) {
  const auto [name, texts] = FindTexts(reader);
  if (texts == nullptr) return {};
  if (!texts->is_array() || texts->empty() || texts->size() > size_t{kMaxChoices}) {
    reader->RefuseValue(name, fmt::format("an array of 1 to {} strings", kMaxChoices), *texts);
    return {};
  }
  for (const char* other : {"stop", "stop_token_ids", "min_tokens", "allowed_token_ids"}) {
    if (!reader->Has(other)) continue;
    reader->Refuse(other, fmt::format("{} is not allowed beside {}", other, name));
    return {};
  }
  std::vector<std::vector<TokenId>> choices;
  std::set<std::string> known;
  for (const Json& item : *texts) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      reader->RefuseValue(name, "an array of strings, none of them empty", item);
      return {};
    }
    const auto& text = item.get_ref<const std::string&>();
    if (!known.insert(text).second) {
      reader->RefuseValue(name, "an array of distinct strings", item);
      return {};
    }
    choices.push_back(TokensOf(*model.tokenizer, text));
    if (choices.back().empty()) {
      reader->RefuseValue(name, "strings that the model's tokenizer writes unchanged", item);
      return {};
    }
  }
  if (!EndThoseThatOthersBeginWith(model, &choices)) {
    reader->Refuse(name, name +
                             " has a string that another begins with, and the model has no "
                             "token to end it");
    return {};
  }
  return choices;
}

}  // namespace skein
