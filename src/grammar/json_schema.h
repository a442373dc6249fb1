#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace skein {

// Completes a schema for constrained answers: every object and array then says whether it may have
// further members. An object that lists its properties has no others, unless it says so
// (additionalProperties, patternProperties, unevaluatedProperties), because a small model would
// otherwise go on inventing members. An object or an array that lists nothing may hold anything. A
// schema without `type` gets the types to which its keywords belong. Every answer is valid under
// the original schema. Schemas that combine several others (allOf) stay unchanged. Cost: linear;
// recursion to the depth of the schema.
nlohmann::ordered_json CompleteSchema(nlohmann::ordered_json schema);

// The first keyword of a schema that the grammar would ignore, so that answers might violate it;
// empty if there is none.
std::string IgnoredKeyword(const nlohmann::ordered_json& schema);

}  // namespace skein
