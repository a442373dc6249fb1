#pragma once

#include <string>

namespace skein {

// The checkout from which this program was built. The benchmarks' data and the models' adapters are
// there, unless an environment variable names another place.
std::string SourceDir();

}  // namespace skein
