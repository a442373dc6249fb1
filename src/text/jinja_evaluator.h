#pragma once

#include <string>

#include "base/result.h"
#include "text/jinja_ast.h"

namespace skein::jinja {

// Renders a parsed template. `variables` is a dict with string keys. Every error of the template,
// and going over the limits, is kInvalidArgument; what Python would do and this engine cannot
// reproduce is kUnsupported.
Result<std::string> Evaluate(const Body& body, const Value& variables, RenderState* state);

}  // namespace skein::jinja
