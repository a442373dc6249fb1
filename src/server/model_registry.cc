#include "server/model_registry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {

int32_t ModelEntry::Room(size_t prompt_tokens) const {
  const auto prompt = static_cast<int64_t>(prompt_tokens);
  int64_t room = max_model_len - prompt;
  // The last token of an answer is not stored in the cache. If the prompt does not fit into the
  // cache, there is no room at all, and the engine refuses the request.
  if (max_kv_tokens >= prompt && max_kv_tokens > 0)
    room = std::min(room, max_kv_tokens - prompt + 1);
  return static_cast<int32_t>(room);
}

void ModelRegistry::Add(ModelEntry entry) {
  SKEIN_CHECK(!entry.names.empty());
  SKEIN_CHECK(entry.engine != nullptr && entry.tokenizer != nullptr);
  for (const std::string& name : entry.names) {
    SKEIN_CHECK(!name.empty() && (entries_.empty() || Find(name) == nullptr));
  }
  entries_.push_back(std::move(entry));
}

const ModelEntry* ModelRegistry::Find(std::string_view name) const {
  if (name.empty()) {
    const auto is_base = [](const ModelEntry& entry) { return entry.adapter_id == 0; };
    const auto found = std::ranges::find_if(entries_, is_base);
    return std::ranges::count_if(entries_, is_base) == 1 ? &*found : nullptr;
  }
  for (const ModelEntry& entry : entries_) {
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end()) {
      return &entry;
    }
  }
  return nullptr;
}

const ModelEntry* ModelRegistry::FindOrOnly(std::string_view name) const {
  const ModelEntry* found = Find(name);
  if (found != nullptr || !accepts_any_name_) return found;
  const ModelEntry* only = Find("");
  if (only == nullptr) return nullptr;
  const bool alone = std::ranges::all_of(entries_, [only](const ModelEntry& entry) {
    return &entry == only || entry.name() == only->decision_adapter;
  });
  return alone ? only : nullptr;
}

std::string ModelRegistry::Names() const {
  std::string names;
  for (const ModelEntry& entry : entries_) {
    for (const std::string& name : entry.names) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

const ModelEntry& ModelRegistry::ForDecisions(const ModelEntry& model) const {
  if (model.decision_adapter.empty()) return model;
  const ModelEntry* adapter = Find(model.decision_adapter);
  SKEIN_CHECK(adapter != nullptr);
  return *adapter;
}

}  // namespace skein
