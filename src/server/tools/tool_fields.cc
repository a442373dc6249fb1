#include "server/tools/tool_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "grammar/json_schema.h"

namespace skein {
namespace {

constexpr size_t kToolsMax = 128;
constexpr size_t kNameBytesMax = 256;
constexpr int kWhitespaceMax = 33;  // between two parts of the arguments, as in other JSON answers

// The functions of `tools`. An error names the entry.
std::vector<Json> ReadFunctions(FieldReader* reader, const Json& tools) {
  std::vector<Json> functions;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string param = fmt::format("tools[{}]", i);
    const Json& tool = tools[i];
    if (!tool.is_object() || tool.value("type", Json("function")) != "function" ||
        !tool.contains("function") || !tool["function"].is_object()) {
      reader->Refuse(param, param + " must be {\"type\": \"function\", \"function\": {...}}");
      return {};
    }
    const Json& function = tool["function"];
    const auto name = FieldReader(function).String("name");
    if (!name || name->empty() || name->size() > kNameBytesMax) {
      reader->Refuse(
          param + ".function.name",
          fmt::format("{}.function.name must be a string of 1 to {} bytes", param, kNameBytesMax));
      return {};
    }
    const auto parameters = function.find("parameters");
    if (parameters != function.end() && !parameters->is_object() && !parameters->is_null()) {
      reader->RefuseValue(param + ".function.parameters", "a JSON schema: an object", *parameters);
      return {};
    }
    functions.push_back(function);
  }
  return functions;
}

// Reads which functions may be called. If the request names one, it is the only one.
void ReadChoice(FieldReader* reader, ToolFields* fields) {
  const Json* choice = reader->Find("tool_choice");
  fields->choice =
      fields->functions.empty() ? ToolFields::Choice::kNone : ToolFields::Choice::kAuto;
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    fields->choice = ToolFields::Choice::kNone;
    return;
  }
  fields->choice_field = "tool_choice";
  if (*choice == "required" || *choice == "any") {
    if (fields->functions.empty()) {
      return reader->Refuse("tool_choice", "tool_choice: \"required\" needs tools");
    }
    fields->choice = ToolFields::Choice::kRequired;
    return;
  }
  const Json* function = choice->is_object() ? &*choice : nullptr;
  if (function != nullptr && function->contains("function")) function = &(*function)["function"];
  if (function == nullptr || !function->is_object() || !FieldReader(*function).String("name")) {
    return reader->RefuseValue(
        "tool_choice", "\"auto\", \"none\", \"required\" or an object that names a function",
        *choice);
  }
  const std::string name = *FieldReader(*function).String("name");
  std::erase_if(fields->functions, [&](const Json& other) { return other["name"] != name; });
  if (fields->functions.empty()) {
    return reader->Refuse("tool_choice",
                          fmt::format("tool_choice names {}, which is not among tools", name));
  }
  fields->functions.resize(1);
  fields->choice = ToolFields::Choice::kRequired;
  fields->parallel = false;
}

Json Text(std::string_view text) { return {{"type", "const_string"}, {"value", text}}; }

Json Sequence(std::vector<Json> elements) {
  if (elements.size() == 1) return std::move(elements.front());
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}

Json OneOf(std::vector<Json> elements) {
  if (elements.size() == 1) return std::move(elements.front());
  return {{"type", "or"}, {"elements", std::move(elements)}};
}

Json SchemaFormat(const Json& schema) {
  Json format = {{"type", "json_schema"}, {"json_schema", CompleteSchema(schema)}};
  format["max_whitespace_cnt"] = kWhitespaceMax;
  return format;
}

// The grammar of a mark. A mark that is one special token has no text for a grammar.
Json Mark(std::string_view mark, const Tokenizer& tokenizer) {
  const auto id = tokenizer.TokenToId(mark);
  if (id && tokenizer.IsSpecial(*id)) return {{"type", "token"}, {"token", *id}};
  return Text(mark);
}

// The grammar of a function's arguments.
Json Arguments(const Json& function) {
  const auto parameters = function.find("parameters");
  const bool has = parameters != function.end() && parameters->is_object();
  return SchemaFormat(has ? *parameters
                          : Json({{"type", "object"}, {"properties", Json::object()}}));
}

// The grammar of a call: {"name": ..., "arguments": {...}}
Json CallObject(const Json& function, ToolStyle style) {
  const char* const key = style == ToolStyle::kLlama3 ? "parameters" : "arguments";
  const std::string begin =
      fmt::format("{{\"name\": {}, \"{}\": ", DumpJson(function["name"]), key);
  return Sequence({Text(begin), Arguments(function), Text("}")});
}

// The grammars of calls of each function, as messages of the harmony format.
std::vector<Json> HarmonyCalls(const std::vector<Json>& functions, const Tokenizer& tokenizer) {
  std::vector<Json> calls;
  for (const Json& function : functions) {
    const std::string name = function["name"].get<std::string>();
    calls.push_back(Sequence({Mark("<|channel|>", tokenizer),
                              Text(fmt::format("commentary to=functions.{} ", name)),
                              Mark("<|constrain|>", tokenizer), Text("json"),
                              Mark("<|message|>", tokenizer), Arguments(function)}));
  }
  return calls;
}

// The grammar of `call`. If several calls are allowed, further ones follow, each behind
// `separator`, up to kForcedCallsMax in all.
Json Several(const Json& call, std::string_view separator, bool parallel) {
  if (!parallel) return call;
  Json more = {{"type", "repeat"}, {"min", 0}, {"max", kForcedCallsMax - 1}};
  more["content"] = Sequence({Text(separator), call});
  return Sequence({call, std::move(more)});
}

}  // namespace

std::vector<std::string> ToolFields::Names() const {
  std::vector<std::string> names;
  for (const Json& function : functions) names.push_back(function["name"].get<std::string>());
  return names;
}

ToolFields ReadToolFields(FieldReader* reader) {
  ToolFields fields;
  if (const Json* older = reader->Find("function_call");
      older != nullptr && *older != "auto" && *older != "none") {
    reader->Refuse("function_call", "function_call is not supported: use tool_choice",
                   StatusCode::kUnsupported);
  }
  if (const Json* tools = reader->Find("tools")) {
    if (!tools->is_array() || tools->size() > kToolsMax) {
      reader->Refuse("tools", fmt::format("tools must be an array of at most {}", kToolsMax));
      return fields;
    }
    fields.tools = *tools;
    fields.functions = ReadFunctions(reader, *tools);
  }
  fields.parallel = reader->Bool("parallel_tool_calls").value_or(true);
  if (reader->status().ok()) ReadChoice(reader, &fields);
  return fields;
}

GrammarSource CallGrammar(const ToolFields& fields, ToolStyle style, const Tokenizer& tokenizer,
                          const GrammarSource* other) {
  std::vector<Json> objects;
  for (const Json& function : fields.functions) objects.push_back(CallObject(function, style));
  const Json object = OneOf(std::move(objects));
  const ToolMarks marks = MarksOf(style);
  Json answer;
  switch (style) {
    case ToolStyle::kHermes:
      answer = Several(Sequence({Mark(marks.begin, tokenizer), Text("\n"), object, Text("\n"),
                                 Mark(marks.end, tokenizer)}),
                       "\n", fields.parallel);
      break;
    case ToolStyle::kSmolLm:
      answer =
          Sequence({Mark(marks.begin, tokenizer), Text("["), Several(object, ", ", fields.parallel),
                    Text("]"), Mark(marks.end, tokenizer)});
      break;
    case ToolStyle::kMistral:
      answer = Sequence({Mark(marks.begin, tokenizer), Text("["),
                         Several(object, ", ", fields.parallel), Text("]")});
      break;
    case ToolStyle::kHarmony:  // a call ends the answer, so there is only one
      answer = OneOf(HarmonyCalls(fields.functions, tokenizer));
      break;
    case ToolStyle::kLlama3:
    case ToolStyle::kJson:
      answer = Several(object, "; ", fields.parallel);
      break;
  }
  if (other != nullptr && other->kind == GrammarKind::kJsonSchema) {
    Json text = SchemaFormat(*ParseJson(other->text));
    if (style == ToolStyle::kHarmony) {  // a message names its channel, as a call does
      text = Sequence({Mark("<|channel|>", tokenizer), Text("final"),
                       Mark("<|message|>", tokenizer), std::move(text)});
    }
    answer = OneOf({std::move(answer), std::move(text)});
  }
  return {GrammarKind::kStructuralTag,
          DumpJson({{"type", "structural_tag"}, {"format", std::move(answer)}})};
}

}  // namespace skein
