#pragma once

#include <string>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace skein::jinja {

// Renders a parsed template. `variables` is a dict with string keys. kInvalidArgument for every
// error of the template, for work beyond the limits, and for a result of Python that this engine
// does not reproduce.
Result<std::string> Evaluate(const Body& body, const Value& variables, RenderState* state);

}  // namespace skein::jinja
