#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace skein::jinja {

// Parses a template with Jinja2's grammar as transformers sets it up (loop controls and the
// `generation` block). A syntax error is kInvalidArgument; a tag, filter, test, method or name that
// Jinja knows and the evaluator does not is kUnsupported, named.
Result<Body> Parse(std::string_view source);

}  // namespace skein::jinja
