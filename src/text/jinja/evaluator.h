#pragma once

#include <string>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace skein::jinja {

// Renders a parsed template. `variables` is a dict with string keys. Every error of the template,
// going over the limits, and what Python would do but this engine cannot reproduce, are
// kInvalidArgument.
Result<std::string> Evaluate(const Body& body, const Value& variables, RenderState* state);

}  // namespace skein::jinja
