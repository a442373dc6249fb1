#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/grammar_compiler.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/token_grammar.h"

namespace skein {

// A constraint of the answer, and the field that gives it.
struct GrammarField {
  std::string name;  // empty: no constraint
  GrammarSource source;
};

// Reads the constraint from response_format, structured_outputs (except its `choice`) or the older
// fields guided_json, guided_json_object, guided_regex and guided_grammar. Errors go to
// reader->status().
GrammarField ReadGrammarField(FieldReader* reader);

// Makes the constraint of a JSON schema, which is an object, `true`, or the text of one.
GrammarSource SchemaSource(const Json& schema);

// Compiles the constraint for the model. An error names the field.
Result<std::shared_ptr<const TokenGrammar>> CompileGrammar(const ModelEntry& model,
                                                           const GrammarField& field);

// Whether a body may ask for a grammar. Compiling a grammar takes milliseconds.
bool MayNeedGrammar(std::string_view body);

// Makes a model's compiler from its tokenizer, its end tokens and the number of its logits. The
// objects that `model` points to must outlive it.
std::shared_ptr<GrammarCompiler> MakeGrammarCompiler(const ModelEntry& model);

}  // namespace skein
