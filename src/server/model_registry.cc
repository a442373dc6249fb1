#include "server/model_registry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {

void ModelRegistry::Add(ModelEntry entry) {
  SKEIN_CHECK(!entry.names.empty());
  SKEIN_CHECK(entry.engine != nullptr && entry.tokenizer != nullptr);
  for (const std::string& name : entry.names) {
    SKEIN_CHECK(!name.empty() && (entries_.empty() || Find(name) == nullptr));
  }
  entries_.push_back(std::move(entry));
}

const ModelEntry* ModelRegistry::Find(std::string_view name) const {
  if (name.empty()) return entries_.size() == 1 ? &entries_.front() : nullptr;
  for (const ModelEntry& entry : entries_) {
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end()) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace skein
