#include "server/generation/grammar_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "grammar/json_schema.h"

namespace skein {
namespace {

constexpr char kFormats[] = "text, json_object, json_schema or structural_tag";

// A member of `object`; null if it is absent, null or false.
const Json* Given(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() || *found == false ? nullptr : &*found;
}

// The members that name a constraint, in each of vLLM's two spellings.
struct Spelling {
  const char* json;
  const char* json_object;
  const char* regex;
  const char* grammar;
  const char* structural_tag;
};
constexpr Spelling kStructured = {"json", "json_object", "regex", "grammar", "structural_tag"};
constexpr Spelling kGuided = {"guided_json", "guided_json_object", "guided_regex", "guided_grammar",
                              "guided_structural_tag"};

// Texts with "::=" are grammars in GBNF, others are in Lark's form.
GrammarSource RulesSource(const std::string& text) {
  const bool is_ebnf = text.find("::=") != text.npos;
  return {is_ebnf ? GrammarKind::kEbnf : GrammarKind::kLark, text};
}

// Reads a JSON schema, which may be given as text.
std::optional<GrammarSource> ReadSchema(FieldReader* reader, const std::string& name,
                                        const Json& value) {
  std::optional<Json> schema = value;
  if (value.is_string()) schema = ParseJson(value.get_ref<const std::string&>());
  if (!schema || !(schema->is_object() || schema->is_boolean())) {
    reader->RefuseValue(name, "a JSON schema: an object, or the text of one", value);
    return std::nullopt;
  }
  if (const std::string ignored = IgnoredKeyword(*schema); !ignored.empty()) {
    const char* hint = ignored == "uniqueItems"
                           ? ": a grammar does not remember the items; drop it and check the answer"
                           : "";
    reader->Refuse(name, fmt::format("{} uses {}, which is not supported{}", name, ignored, hint));
    return std::nullopt;
  }
  return SchemaSource(*schema);
}

std::optional<GrammarSource> ReadText(FieldReader* reader, const std::string& name,
                                      const Json& value, GrammarKind kind) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    reader->RefuseValue(name, "a string that is not empty", value);
    return std::nullopt;
  }
  return GrammarSource{kind, value.get_ref<const std::string&>()};
}

// Stores the constraint of the field `name`. A second constraint is an error.
void Take(FieldReader* reader, std::string name, std::optional<GrammarSource> source,
          GrammarField* field) {
  if (!source) return;
  if (!field->name.empty()) {
    reader->Refuse(name, fmt::format("{} is not allowed beside {}", name, field->name));
    return;
  }
  *field = {std::move(name), *std::move(source)};
}

// Reads the constraint that the members of `object` give. Errors name a member `prefix` + name.
void ReadMembers(FieldReader* reader, const Json& object, const std::string& prefix,
                 const Spelling& spelling, GrammarField* field) {
  if (const Json* json = Given(object, spelling.json)) {
    const std::string name = prefix + spelling.json;
    Take(reader, name, ReadSchema(reader, name, *json), field);
  }
  if (const Json* any = Given(object, spelling.json_object)) {
    const std::string name = prefix + spelling.json_object;
    if (!any->is_boolean()) return reader->RefuseValue(name, "true or false", *any);
    Take(reader, name, SchemaSource({{"type", "object"}}), field);
  }
  if (const Json* regex = Given(object, spelling.regex)) {
    const std::string name = prefix + spelling.regex;
    Take(reader, name, ReadText(reader, name, *regex, GrammarKind::kRegex), field);
  }
  if (const Json* grammar = Given(object, spelling.grammar)) {
    const std::string name = prefix + spelling.grammar;
    auto source = ReadText(reader, name, *grammar, GrammarKind::kEbnf);
    if (source) source = RulesSource(source->text);
    Take(reader, name, std::move(source), field);
  }
  if (const Json* tag = Given(object, spelling.structural_tag)) {
    const std::string name = prefix + spelling.structural_tag;
    auto source = tag->is_object() ? GrammarSource{GrammarKind::kStructuralTag, DumpJson(*tag)}
                                   : ReadText(reader, name, *tag, GrammarKind::kStructuralTag);
    Take(reader, name, std::move(source), field);
  }
}

void ReadResponseFormat(FieldReader* reader, GrammarField* field) {
  const Json* format = reader->Object("response_format");
  if (format == nullptr) return;
  const auto found = format->find("type");
  const std::string type =
      found != format->end() && found->is_string() ? found->get<std::string>() : "";
  if (type == "text") return;
  if (type == "json_object") {
    const Json* schema = Given(*format, "schema");
    const std::string name = schema == nullptr ? "response_format" : "response_format.schema";
    Take(reader, name,
         schema == nullptr ? SchemaSource({{"type", "object"}}) : ReadSchema(reader, name, *schema),
         field);
  } else if (type == "json_schema") {
    const Json* named = Given(*format, "json_schema");
    if (named == nullptr || !named->is_object()) {
      return reader->Refuse("response_format.json_schema",
                            "response_format.json_schema must be an object with a schema");
    }
    const std::string name = "response_format.json_schema.schema";
    const Json* schema = Given(*named, "schema");
    if (schema == nullptr) return reader->Refuse(name, name + " must be a JSON schema: an object");
    Take(reader, name, ReadSchema(reader, name, *schema), field);
  } else if (type == "structural_tag") {
    Take(reader, "response_format", GrammarSource{GrammarKind::kStructuralTag, DumpJson(*format)},
         field);
  } else {
    reader->RefuseValue("response_format.type", kFormats,
                        found != format->end() ? *found : Json(nullptr));
  }
}

}  // namespace

GrammarSource SchemaSource(const Json& schema) {
  return {GrammarKind::kJsonSchema, DumpJson(CompleteSchema(schema))};
}

GrammarField ReadGrammarField(FieldReader* reader) {
  GrammarField field;
  ReadResponseFormat(reader, &field);
  if (const Json* object = reader->Object("structured_outputs")) {
    ReadMembers(reader, *object, "structured_outputs.", kStructured, &field);
  }
  ReadMembers(reader, reader->object(), "", kGuided, &field);
  return field;
}

Result<std::shared_ptr<const TokenGrammar>> CompileGrammar(const ModelEntry& model,
                                                           const GrammarField& field) {
  if (model.grammars == nullptr) {
    return Status(StatusCode::kUnsupported, field.name + " is not supported by this model",
                  field.name);
  }
  auto grammar = model.grammars->Compile(field.source);
  if (grammar.ok()) return grammar;
  return Status(grammar.status().code(),
                fmt::format("{}: {}", field.name, grammar.status().message()), field.name);
}

bool MayNeedGrammar(std::string_view body) {
  constexpr std::string_view kNames[] = {"\"response_format\"", "\"structured_outputs\"",
                                         "\"guided_", "\"tool", "\"format\""};
  return std::ranges::any_of(kNames,
                             [&](std::string_view name) { return body.find(name) != body.npos; });
}

std::shared_ptr<GrammarCompiler> MakeGrammarCompiler(const ModelEntry& model) {
  return std::make_shared<GrammarCompiler>([tokenizer = model.tokenizer, engine = model.engine,
                                            end_tokens = model.defaults.eos_token_ids] {
    const int32_t vocab_size = engine->Limits().vocab_size;
    GrammarVocabulary vocabulary{.token_bytes = {}, .end_tokens = end_tokens};
    vocabulary.token_bytes.resize(static_cast<size_t>(vocab_size));
    const int32_t count = std::min(vocab_size, tokenizer->vocab_size());
    for (TokenId id = 0; id < count; ++id) {
      if (tokenizer->IsSpecial(id)) continue;
      vocabulary.token_bytes[static_cast<size_t>(id)] = tokenizer->TokenBytes(id);
    }
    return vocabulary;
  });
}

}  // namespace skein
