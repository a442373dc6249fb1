#pragma once

#include <string>
#include <vector>

#include "server/generation/grammar_fields.h"
#include "server/json/field_reader.h"
#include "server/tools/tool_style.h"

namespace skein {

// The tools of a request, and whether the model must call one.
struct ToolFields {
  enum class Choice { kNone, kAuto, kRequired };
  Json tools = Json::array();   // as given; shown to the model
  std::vector<Json> functions;  // that may be called: {name, description?, parameters?, strict?}
  Choice choice = Choice::kNone;
  std::string choice_field;  // the field that forces a call
  bool parallel = true;      // an answer may hold several calls

  bool active() const { return choice != Choice::kNone; }
  std::vector<std::string> Names() const;
};

// Reads tools, tool_choice and parallel_tool_calls. Errors go to reader->status().
ToolFields ReadToolFields(FieldReader* reader);

// The most calls that a forced answer may hold.
inline constexpr int kForcedCallsMax = 16;

// Makes the grammar of an answer that is one call, or several: as the model's family writes them,
// with arguments that their functions' schemas allow. If `other` is a JSON schema's source, an
// answer of this schema is allowed, too.
GrammarSource CallGrammar(const ToolFields& fields, ToolStyle style, const Tokenizer& tokenizer,
                          const GrammarSource* other);

}  // namespace skein
