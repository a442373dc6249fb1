#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skein {

// A field of a form, as browsers and API clients send files (RFC 7578). The views are of the body.
struct FormPart {
  std::string name;
  std::string filename;  // empty: it is no file
  std::string_view content;
};

// Takes a multipart/form-data body apart. kInvalidArgument if `content_type` names another type or
// no boundary, or if the body does not keep to it.
Result<std::vector<FormPart>> ParseForm(std::string_view content_type, std::string_view body);

}  // namespace skein
