#include "server/decisions/heads/kev_sequence.h"

#include <algorithm>

#include "server/decisions/heads/python_text.h"
#include "server/json/python_json.h"

namespace skein {
namespace {

constexpr std::string_view kDelimiterTokens[] = {"<|fim_prefix|>", "<|fim_middle|>",
                                                 "<|box_start|>", "<|box_end|>", "<|fim_suffix|>"};
constexpr std::string_view kBrokenBar = "\xc2\xa6";

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// `depth`: the indentation of the lines of lists and objects.
std::string RenderedJson(const Json& value, size_t depth) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (!value.is_structured()) return DumpPythonJson(value);
  const std::string indent(2 * depth, ' ');
  std::string text;
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) text += '\n';
    first = false;
    text += indent;
    if (value.is_array()) {
      const std::string item = RenderedJson(member, depth + 1);
      text += "- ";
      text += WithoutLeadingSpace(item);
    } else {
      text += key;
      text += member.is_structured() ? ":\n" : ": ";
      text += RenderedJson(member, member.is_structured() ? depth + 1 : 0);
    }
  }
  return text;
}

}  // namespace

std::string KevText(const Json& value) { return RenderedJson(value, 0); }

std::vector<std::string> KevOptions(const DecisionQuestion& question) {
  if (question.kind == DecisionKind::kPredicate) {
    return {LabelledText("no", question.options[1].description),
            LabelledText("yes", question.options[0].description)};
  }
  std::vector<std::string> texts;
  for (const DecisionOption& option : question.options) {
    const bool level = question.kind == DecisionKind::kScore && option.name.empty();
    texts.push_back(level ? option.description : LabelledText(option.name, option.description));
  }
  return texts;
}

std::string WithoutDelimiters(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find("<|", at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    size_t end = open + 2;
    while (end < text.size() && IsNameByte(text[end])) ++end;
    if (end == open + 2 || text.substr(end, 2) != "|>") {
      out += text[open];
      at = open + 1;
      continue;
    }
    out += '<';
    out += kBrokenBar;
    out += text.substr(open + 2, end - open - 2);
    out += kBrokenBar;
    out += '>';
    at = end + 2;
  }
  return out;
}

Result<KevEncoder> KevEncoder::Make(const ModelEntry& model) {
  KevEncoder encoder(model);
  for (size_t i = 0; i < encoder.delimiters_.size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(encoder.delimiters_[i], FindSpecialToken(model, kDelimiterTokens[i]));
  }
  return encoder;
}

Status KevEncoder::Append(Delimiter before, std::string_view text,
                          std::vector<TokenId>* ids) const {
  ids->push_back(delimiters_[before]);
  return EncodeForHead(*model_, WithoutDelimiters(text), ids);
}

Result<std::vector<TokenId>> KevEncoder::State(std::string_view text) const {
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(Append(kState, text, &ids));
  return ids;
}

Result<HeadSequence> KevEncoder::Sequence(const DecisionQuestion& question,
                                          std::span<const TokenId> state) const {
  HeadSequence sequence;
  std::vector<TokenId>& ids = sequence.ids;
  ids.assign(state.begin(), state.end());
  SKEIN_RETURN_IF_ERROR(Append(kQuestion, question.instructions, &ids));
  for (const std::string& option : KevOptions(question)) {
    SKEIN_RETURN_IF_ERROR(Append(kOption, option, &ids));
    sequence.markers.push_back(static_cast<int32_t>(ids.size()));
    ids.push_back(delimiters_[kOptionEnd]);
  }
  sequence.summary = static_cast<int32_t>(ids.size());
  ids.push_back(delimiters_[kDecide]);
  sequence.state_tokens = static_cast<int32_t>(state.size());
  sequence.num_shared = sequence.state_tokens;
  sequence.distinct_options = static_cast<int32_t>(sequence.markers.size());
  return sequence;
}

}  // namespace skein
