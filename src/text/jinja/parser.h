#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace skein::jinja {

// Parses a template in the part of Jinja2 that published chat templates use, with the settings of
// transformers. The result equals Python's, or an error names the construct that is not supported.
//
//   tags       if elif else, for (with `if` and else), break, continue, set (also as a block),
//              macro, filter, generation; white space control as with trim_blocks and lstrip_blocks
//   operators  + - * % ~ == != < <= > >= in, not in, and, or, not, `a if b else c`, unary -,
//              subscripts and slices
//   literals   decimal integers and floats, strings with \x \u \U escapes, lists, tuples, dicts
//   filters    capitalize count d default dictsort first indent int items join last length list
//              lower map reject rejectattr replace reverse safe select selectattr sort string title
//              tojson trim unique upper
//   tests      defined undefined none boolean true false integer float number string mapping
//              sequence iterable odd even in == eq equalto != ne
//   methods    of a dict: get items keys values; of a string: capitalize endswith find join lower
//              lstrip replace rsplit rstrip split splitlines startswith strip title upper
//   functions  dict namespace raise_exception range strftime_now
//   loop       first index index0 last length nextitem previtem revindex revindex0
//
// A syntax error is kInvalidArgument. A construct outside this list is kUnsupported. Evaluate
// refuses a few values by name: for example a string before %, and `title` of text outside ASCII.
Result<Body> Parse(std::string_view source);

}  // namespace skein::jinja
