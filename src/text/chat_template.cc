#include "text/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/json_numbers.h"
#include "text/jinja/ast.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

using Json = ChatTemplate::Json;

constexpr size_t kMaxWork = size_t{1} << 30;
constexpr size_t kMaxCopiesOfInput = 512;

// Longer sources are refused before they are parsed, and longer files before they are read.
constexpr size_t kMaxSourceBytes = size_t{4} << 20;
constexpr size_t kMaxConfigBytes = size_t{64} << 20;

jinja::Value ToValue(const Json& json, int depth, jinja::RenderState* state) {
  using jinja::Value;
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::Of(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::Of(static_cast<jinja::Integer>(json.get<int64_t>()));
    case Json::value_t::number_unsigned:
      return Value::Of(static_cast<jinja::Integer>(json.get<uint64_t>()));
    case Json::value_t::number_float:
      return Value::Of(json.get<double>());
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      state->Charge(text.size());
      if (!IsValidUtf8(text)) state->Fail("a string is not valid UTF-8");
      return Value::Of(text);
    }
    case Json::value_t::array:
    case Json::value_t::object:
      break;
    default:
      return Value::OfNone();
  }
  if (depth >= jinja::kMaxContainerDepth) {
    state->Fail("lists and objects nest deeper than " + std::to_string(jinja::kMaxContainerDepth));
    return Value();
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(ToValue(item, depth + 1, state));
    return jinja::MakeSequence(jinja::SequenceKind::kList, std::move(items), state);
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& item : json.items()) {
    items.emplace_back(Value::Of(item.key()), ToValue(item.value(), depth + 1, state));
  }
  return jinja::MakeDict(std::move(items), state);
}

class JinjaChatTemplate final : public ChatTemplate {
 public:
  JinjaChatTemplate(std::string source, jinja::Body body,
                    std::unique_ptr<const jinja::Body> tool_body, Json special_tokens)
      : source_(std::move(source)),
        body_(std::move(body)),
        tool_body_(std::move(tool_body)),
        special_tokens_(std::move(special_tokens)) {}

  Result<std::string> Render(const Json& variables) const override {
    if (!variables.is_object()) {
      return Status(StatusCode::kInvalidArgument, "chat template: variables must be an object");
    }
    Json all = special_tokens_;
    for (const auto& item : variables.items()) all[item.key()] = item.value();
    jinja::RenderLimits limits;
    limits.max_work = kMaxWork;
    jinja::RenderState reading(limits);
    const jinja::Value values = ToValue(all, 0, &reading);
    if (!reading.ok()) return reading.status();
    // Templates copy their input many times, so the limit grows with the input; short inputs need
    // little work.
    limits.max_work =
        std::min(kMaxWork, jinja::RenderLimits{}.max_work + kMaxCopiesOfInput * reading.work());
    jinja::RenderState state(limits);
    const auto tools = variables.find("tools");
    const bool with_tools = tools != variables.end() && !tools->is_null();
    return jinja::Evaluate(with_tools && tool_body_ != nullptr ? *tool_body_ : body_, values,
                           &state);
  }

  std::string source() const override { return source_; }

 private:
  const std::string source_;
  const jinja::Body body_;
  const std::unique_ptr<const jinja::Body> tool_body_;  // for requests with tools; may be null
  const Json special_tokens_;
};

Result<jinja::Body> ParseSource(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return Status(StatusCode::kTooLarge, "chat template: " + std::to_string(source.size()) +
                                             " bytes, at most " + std::to_string(kMaxSourceBytes) +
                                             " are allowed");
  }
  return jinja::Parse(source);
}

// The text of the file; nullopt if the file does not exist.
Result<std::optional<std::string>> ReadFile(const std::string& path, size_t max_bytes) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<std::string>();
  const auto size = std::filesystem::file_size(path, error);
  if (error) return Status(StatusCode::kInvalidArgument, path + ": " + error.message());
  if (size > max_bytes) {
    return Status(StatusCode::kTooLarge, path + ": " + std::to_string(size) + " bytes, at most " +
                                             std::to_string(max_bytes) + " are allowed");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return Status(StatusCode::kInvalidArgument, path + ": cannot be read");
  return std::optional<std::string>(std::move(text));
}

// The text of a token in the config, which is a string or an object with the member `content`.
std::optional<std::string> TokenText(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return std::nullopt;
}

Json SpecialTokens(const Json& config) {
  Json tokens = Json::object();
  for (const auto* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    if (!config.contains(name)) continue;
    if (const auto text = TokenText(config[name])) tokens[name] = *text;
  }
  const auto more = config.find("additional_special_tokens");
  if (more != config.end() && more->is_array()) {
    Json texts = Json::array();
    for (const Json& token : *more) {
      if (const auto text = TokenText(token)) texts.push_back(*text);
    }
    tokens["additional_special_tokens"] = std::move(texts);
  }
  return tokens;
}

struct Sources {
  std::optional<std::string> plain;
  std::optional<std::string> with_tools;
};

// Reads `chat_template` of the config: one template, or a list of {name, template}.
Result<Sources> SourcesOf(const Json& config, const std::string& path) {
  Sources sources;
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return sources;
  if (found->is_string()) {
    sources.plain = found->get<std::string>();
    return sources;
  }
  if (!found->is_array()) {
    return Status(StatusCode::kInvalidArgument,
                  path + ": 'chat_template' must be a string or a list of named templates");
  }
  for (const Json& entry : *found) {
    const auto text_of = [&entry](const char* member) {
      const bool there = entry.is_object() && entry.contains(member) && entry[member].is_string();
      return there ? entry[member].get<std::string>() : std::string();
    };
    if (text_of("name") == "default") sources.plain = text_of("template");
    if (text_of("name") == "tool_use") sources.with_tools = text_of("template");
  }
  return sources;
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(std::string_view source) {
  SKEIN_ASSIGN_OR_RETURN(jinja::Body body, ParseSource(source));
  return std::unique_ptr<ChatTemplate>(
      new JinjaChatTemplate(std::string(source), std::move(body), nullptr, Json::object()));
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Load(const std::string& model_dir) {
  const std::string config_path = model_dir + "/tokenizer_config.json";
  SKEIN_ASSIGN_OR_RETURN(const auto config_text, ReadFile(config_path, kMaxConfigBytes));
  Json config = Json::object();
  if (config_text) {
    config = Json::parse(WithReadableNumbers(*config_text), nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) {
      return Status(StatusCode::kInvalidArgument, config_path + ": not a JSON object");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(Sources sources, SourcesOf(config, config_path));
  const std::string jinja_path = model_dir + "/chat_template.jinja";
  SKEIN_ASSIGN_OR_RETURN(auto jinja_text, ReadFile(jinja_path, kMaxSourceBytes));
  if (jinja_text) sources = Sources{std::move(jinja_text), std::nullopt};
  if (!sources.plain) {
    return Status(StatusCode::kNotFound,
                  model_dir + ": no chat template, neither chat_template.jinja nor a default in " +
                      "tokenizer_config.json");
  }
  SKEIN_ASSIGN_OR_RETURN(jinja::Body body, ParseSource(*sources.plain));
  std::unique_ptr<const jinja::Body> tool_body;
  if (sources.with_tools) {
    SKEIN_ASSIGN_OR_RETURN(jinja::Body parsed, ParseSource(*sources.with_tools));
    tool_body = std::make_unique<const jinja::Body>(std::move(parsed));
  }
  return std::unique_ptr<ChatTemplate>(new JinjaChatTemplate(
      *std::move(sources.plain), std::move(body), std::move(tool_body), SpecialTokens(config)));
}

}  // namespace skein
