#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace skein {

// A schema as answers are constrained by it: every object and array says whether it may have
// further members. An object that lists its properties has no others, unless it says so
// (additionalProperties, patternProperties, unevaluatedProperties); a small model would otherwise
// go on inventing members. An object or an array that lists nothing may hold anything. A schema
// without `type` has the types that its keywords are about. Every answer is valid under the schema
// as given. Schemas that combine several others (allOf) stay as they are. Cost: linear; recursion
// to the depth of the schema.
nlohmann::ordered_json CompleteSchema(nlohmann::ordered_json schema);

// The first keyword of a schema that a grammar would ignore, so that answers might break it; empty:
// there is none.
std::string IgnoredKeyword(const nlohmann::ordered_json& schema);

}  // namespace skein
