#include "base/check.h"
#include "harness.h"
#include "model/config/config.h"
#include "model/config/laya_config.h"
#include "model/config/sysone_config.h"

namespace skein::fuzz {
namespace {

constexpr int32_t kFewTokens = 512;

// The sizes of an accepted config agree with each other, and what is computed from them is finite.
void CheckConfig(const ModelConfig& config) {
  SKEIN_CHECK(config.vocab_size > 0 && config.hidden_size > 0 && config.num_layers > 0);
  SKEIN_CHECK(config.num_heads > 0 && config.num_kv_heads > 0 && config.head_dim > 0);
  SKEIN_CHECK(config.num_heads % config.num_kv_heads == 0 && config.max_position > 0);
  SKEIN_CHECK(config.NumParameters() > 0 && config.KvBytesPerToken(DType::kBf16) >= 0);
  SKEIN_CHECK(config.StateBytes() >= 0 && !config.ArchitectureName().empty());
  SKEIN_CHECK(config.local.layers.empty() || std::ssize(config.local.layers) == config.num_layers);
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    (void)config.IsLocal(layer);
    (void)config.IsLinear(layer);
    (void)config.HasExperts(layer);
    (void)config.Rotates(layer);
  }
  if (!config.is_bert_family()) (void)MakeRopeTable(config.rope, config.head_dim, kFewTokens);
}

}  // namespace

// The reader (config: a config.json alone; laya, sysone: a folder of one), the mark, its own
// config, the mark, that of the encoder or the base model.
void FuzzModelConfig(Bytes data) {
  const auto [kind, rest] = PartsOf(TextOf(data));
  const auto [first, second] = PartsOf(rest);
  if (kind == "config") {
    const auto config = ParseModelConfig(std::string(first));
    return config.ok() ? CheckConfig(config.value()) : void();
  }
  const bool laya = kind == "laya";
  const std::string folder = laya ? "encoder" : "base";
  std::filesystem::create_directories(Folder() / folder);
  RemoveFile(laya ? "config.json" : "rl_agent_config.json");
  WriteFile(laya ? "rl_agent_config.json" : "config.json", first);
  WriteFile(folder + "/config.json", second);
  const auto config = LoadModelConfig(Folder().string());
  if (config.ok()) CheckConfig(config.value());
}

}  // namespace skein::fuzz
