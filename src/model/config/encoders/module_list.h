#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skein {

// An entry of modules.json, in the layout of sentence-transformers.
struct ModuleEntry {
  std::string kind;  // ModuleKind of its type
  std::string dir;   // the directory of its files
};

// The last part of a module's type, which is the name of its class in all versions of the library.
std::string_view ModuleKind(std::string_view type);

// The entries of a model's modules.json; none if there is no such file, or no list in it. The
// reader of embedding models reports faults of the file; other models are not refused for them.
std::vector<ModuleEntry> LoadModuleList(const std::string& model_dir);

}  // namespace skein
