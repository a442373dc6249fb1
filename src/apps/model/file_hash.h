#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// The SHA-256 of a file's bytes, in lower-case hexadecimal; kNotFound if the file cannot be read.
Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace skein
