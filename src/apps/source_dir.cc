#include "apps/source_dir.h"

namespace skein {

std::string SourceDir() { return SKEIN_SOURCE_DIR; }

}  // namespace skein
