#pragma once

#include <string>

#include "server/json/json.h"

namespace skein {

// How characters beyond ASCII are written: as they are (ensure_ascii off), or escaped.
enum class PythonJsonChars { kAll, kAscii };

// JSON as Python's json.dumps writes it: a space behind each comma and colon, and Python's spelling
// of real numbers. Models are trained on texts of this form.
std::string DumpPythonJson(const Json& value, PythonJsonChars chars = PythonJsonChars::kAll);

// JSON as json.dumps writes it with sorted keys, no spaces and ensure_ascii off.
std::string DumpSortedJson(const Json& value);

}  // namespace skein
