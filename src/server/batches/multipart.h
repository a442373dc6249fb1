#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skein {

// A field of a form in which browsers and API clients send files (RFC 7578). The views point into
// the body.
struct FormPart {
  std::string name;
  std::string filename;  // empty: the field is not a file
  std::string_view content;
};

// Splits a multipart/form-data body into its fields. kInvalidArgument if `content_type` names
// another type or no boundary, or if the body is malformed.
Result<std::vector<FormPart>> ParseForm(std::string_view content_type, std::string_view body);

}  // namespace skein
