#pragma once

#include <string>

namespace skein {

// The checkout that this program was built in. The benchmarks' data and the models' adapters lie
// there, unless an environment variable names another place.
std::string SourceDir();

}  // namespace skein
