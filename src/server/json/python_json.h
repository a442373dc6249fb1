#pragma once

#include <string>

#include "server/json/json.h"

namespace skein {

// JSON as Python's json.dumps writes it with ensure_ascii off: a space behind each comma and colon,
// and Python's spelling of real numbers. Models are trained on texts of this form.
std::string DumpPythonJson(const Json& value);

}  // namespace skein
