#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/decisions/baseline_cache.h"
#include "server/json/json.h"
#include "server/reasoning/reasoning_style.h"
#include "server/tools/tool_style.h"
#include "skein/engine.h"
#include "skein/model_traits.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace skein {

class GrammarCompiler;  // grammar/grammar_compiler.h

// The defaults of fields that a request lacks, from the model's generation_config.json.
struct GenerationDefaults {
  float temperature = 1.0f;
  float top_p = 1.0f;
  int32_t top_k = 0;
  float repetition_penalty = 1.0f;
  std::vector<TokenId> eos_token_ids;  // they end a generation unless the request sets ignore_eos
};

// The memory for each model's cached answers to questions about inputs without content.
inline constexpr size_t kBaselineBytesMax = size_t{16} << 20;

// How special tokens in users' texts are read.
enum class UserSpecialTokens {
  kDefault,  // as text in decisions and text pairs, otherwise as tokens (as HuggingFace does)
  kPlain,    // as text, in chat messages, too
  kParse,    // as tokens
};

// One served model. The objects that it points to must outlive the server.
struct ModelEntry {
  std::vector<std::string> names;  // the first is the model's name, the others are aliases
  Engine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: chat is refused
  ToolFormat tools;                           // how chats show tools and how the model writes calls
  ReasoningFormat reasoning;                  // how answers to chats hold reasoning
  std::shared_ptr<GrammarCompiler> grammars;  // null: constraints by a grammar are refused
  GenerationDefaults defaults;
  Json chat_template_kwargs = Json::object();  // defaults: members of the request override them
  UserSpecialTokens user_special_tokens = UserSpecialTokens::kDefault;
  int32_t adapter_id = 0;  // sent with every request to this model; 0: the engine's base model
  std::string parent;      // the name of the adapter's base model; empty: no adapter
  std::string decision_adapter;  // the name of the entry that answers decisions; empty: this one
  int32_t max_model_len = 0;
  int64_t max_kv_tokens =
      0;  // the most tokens of a decoding sequence that the cache can hold; 0: no limit
  ModelTraits traits;
  int64_t created_s = 0;  // Unix time
  // The cached baselines of decisions by this model. Copies of the entry share them.
  std::shared_ptr<BaselineCache> baselines = std::make_shared<BaselineCache>(kBaselineBytesMax);
  // The time of the last warning of a small label mass; 0: never.
  std::shared_ptr<std::atomic<TimeUs>> warned_us = std::make_shared<std::atomic<TimeUs>>(0);

  const std::string& name() const { return names.front(); }
  // The most tokens that an answer can have behind a prompt of fewer than max_model_len tokens, if
  // the client sets no limit.
  int32_t Room(size_t prompt_tokens) const;
};

// Maps names to models. Immutable once the server has it.
class ModelRegistry {
 public:
  // REQUIRES: the entry has at least one name, no name is taken, and its engine and tokenizer are
  // set.
  void Add(ModelEntry entry);

  // Null if there is no such model. An empty name finds the only model that is not an adapter.
  const ModelEntry* Find(std::string_view name) const;
  // The entry that answers decisions for `model`, which is an entry of this registry.
  const ModelEntry& ForDecisions(const ModelEntry& model) const;
  const std::vector<ModelEntry>& entries() const { return entries_; }
  // Like Find. After set_accepts_any_name(true), any name finds the model if its decision adapter
  // is the only other entry. With further adapters a wrong name could mean any of them.
  const ModelEntry* FindOrOnly(std::string_view name) const;
  void set_accepts_any_name(bool accepts) { accepts_any_name_ = accepts; }
  // The names of all models, as errors list them.
  std::string Names() const;

 private:
  std::vector<ModelEntry> entries_;
  bool accepts_any_name_ = false;
};

}  // namespace skein
