#pragma once

#include <string>
#include <vector>

namespace skein {

// An entry of modules.json, in the layout of sentence-transformers.
struct ModuleEntry {
  std::string kind;  // the last part of its type, which is the name of its class
                     // in all versions
  std::string dir;   // the directory of its files
};

// The entries of a model's modules.json; none if there is no such file, or no list in it.
std::vector<ModuleEntry> LoadModuleList(const std::string& model_dir);

}  // namespace skein
