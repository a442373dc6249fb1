#pragma once

#include <string>
#include <vector>

#include "server/generation/grammar_fields.h"
#include "server/json/field_reader.h"
#include "server/tools/tool_style.h"

namespace skein {

// The tools of a request, and whether the model must call a tool.
struct ToolFields {
  enum class Choice { kNone, kAuto, kRequired };
  Json tools = Json::array();  // as the request gave them; shown to the model
  // Functions that may be called: {name, description?, parameters?, strict?}.
  std::vector<Json> functions;
  Choice choice = Choice::kNone;
  std::string choice_field;  // the field that forces a call
  bool parallel = true;      // an answer may hold several calls

  bool active() const { return choice != Choice::kNone; }
  std::vector<std::string> Names() const;
};

// Reads tools, tool_choice and parallel_tool_calls. Errors go to reader->status().
ToolFields ReadToolFields(FieldReader* reader);

// The most calls in an answer that must be a call.
inline constexpr int kForcedCallsMax = 16;

// Makes the grammar of an answer that is one call or several, as the model's family writes them,
// with arguments that the functions' schemas allow. If `other` is the source of a JSON schema, the
// answer may instead be a text of this schema.
GrammarSource CallGrammar(const ToolFields& fields, ToolStyle style, const Tokenizer& tokenizer,
                          const GrammarSource* other);

}  // namespace skein
