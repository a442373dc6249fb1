#include "model/config/encoders/module_list.h"

#include <simdjson.h>

#include <string_view>

#include "io/json_file.h"

namespace skein {
namespace {

// The text of a member that is a string; empty if it is absent or of another type.
std::string TextOf(const simdjson::dom::element& object, const char* key) {
  std::string_view text;
  if (object[key].get_string().get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

}  // namespace

std::string_view ModuleKind(std::string_view type) { return type.substr(type.rfind('.') + 1); }

std::vector<ModuleEntry> LoadModuleList(const std::string& model_dir) {
  const std::string path = model_dir + "/modules.json";
  Result<std::string> text = ReadFile(path, JsonFile::kMaxBytes);
  if (!text.ok()) return {};
  const std::string_view bom = "\xef\xbb\xbf";
  const std::string_view list = text->starts_with(bom) ? std::string_view(*text).substr(3) : *text;
  Result<JsonFile> file = JsonFile::Parse("{\"modules\":" + std::string(list) + "}", path);
  simdjson::dom::array modules;
  if (!file.ok() || file->root().members()["modules"].get_array().get(modules) != simdjson::SUCCESS)
    return {};
  std::vector<ModuleEntry> entries;
  for (const simdjson::dom::element module : modules) {
    entries.push_back({std::string(ModuleKind(TextOf(module, "type"))),
                       model_dir + "/" + TextOf(module, "path")});
  }
  return entries;
}

}  // namespace skein
