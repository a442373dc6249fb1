#include "apps/gguf/gguf_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/config/laya_config.h"
#include "testing/gguf_builder.h"

namespace skein {
namespace {

using ::skein::testing::GgufBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The prompt of Laya's files, with the tokens [C], [S] and [M].
constexpr char kTemplate[] =
    "[C]{{ type }} question: {{ instructions if instructions is string else instructions | tojson "
    "}}[S]{% for o in options %}[M] {% if type == 'choice' %}{{ o.key }}{% if o.description %}: {{ "
    "o.description if o.description is string else o.description | tojson }}{% endif %}{% elif "
    "type == 'score' %}level {{ o.key }}: {{ o.description if o.description is string else "
    "o.description | tojson }}{% else %}{{ o.key }}: {% if o.description %}{{ o.description if "
    "o.description is string else o.description | tojson }}{% elif o.key == 'true' %}yes, the "
    "statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}{% endfor "
    "%}[S]{{ state if state is string else state | tojson }}[S]";

// The metadata of a file of Laya, of which tests replace entries.
class LayaFile {
 public:
  // Writes `key` with another value, or not at all.
  LayaFile& Replace(const std::string& key, std::function<void(GgufBuilder*)> write = {}) {
    replaced_.insert(key);
    if (write) write(&builder_);
    return *this;
  }

  Result<std::optional<GgufDecision>> Read() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    const auto path = std::filesystem::temp_directory_path() /
                      ("skein_laya_" + std::to_string(getpid()) + name + ".gguf");
    std::ofstream(path, std::ios::binary) << Build();
    const Result<GgufModel> file = GgufModel::Open(path);
    std::filesystem::remove(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return ReadGgufDecision(file.value());
  }
  std::string Refusal() { return Read().status().message(); }

 private:
  std::string Build() {
    Text("general.architecture", "modern-bert");
    Text("modern-bert.decision.type", "laya");
    Text("tokenizer.chat_template.systemone", kTemplate);
    Int("modern-bert.block_count", 5);
    Int("modern-bert.decision.block_count", 2);
    Int("modern-bert.decision.max_head_tokens", 96);
    Int("modern-bert.context_length", 2048);
    Int("modern-bert.embedding_length", 128);
    Int("modern-bert.attention.head_count", 2);
    Int("tokenizer.ggml.bos_token_id", 0);
    Int("tokenizer.ggml.seperator_token_id", 1);
    Int("tokenizer.ggml.mask_token_id", 2);
    if (Has("tokenizer.ggml.tokens"))
      builder_.Texts("tokenizer.ggml.tokens", {"[C]", "[S]", "[M]"});
    return builder_.Build();
  }
  bool Has(const std::string& key) const { return !replaced_.contains(key); }
  void Text(const std::string& key, const std::string& value) {
    if (Has(key)) builder_.Text(key, value);
  }
  void Int(const std::string& key, uint32_t value) {
    if (Has(key)) builder_.Int(key, value);
  }

  std::set<std::string> replaced_;
  GgufBuilder builder_;
};

LayaFile WithInt(const std::string& key, uint32_t value) {
  return LayaFile().Replace(key, [&](GgufBuilder* b) { b->Int(key, value); });
}

TEST(GgufDecision, ReadsLaya) {
  LayaFile file;
  file.Replace("temperatures", [](GgufBuilder* b) {
    b->Float("modern-bert.decision.temperature.score", 1.3f)
        .Float("modern-bert.decision.temperature.choice.3_5", 0.8f)
        .Float("modern-bert.decision.temperature.choice.11", 2);
  });
  Result<std::optional<GgufDecision>> decision = file.Read();
  ASSERT_TRUE(decision.ok()) << decision.status().message();
  ASSERT_TRUE(decision.value().has_value());
  EXPECT_EQ((*decision)->family, GgufDecision::Family::kLaya);
  const nlohmann::json config = {
      {"encoder", "modern-bert"},
      {"head_layers", 2},
      {"max_len", 2048},
      {"head_max_len", 96},
      {kNoActionHead, true},
      {"temperature", {1, 1.3, 1}},
      {"temperature_by_options", {{"choice:3-5", 0.8}, {"choice:11+", 2.0}}}};
  EXPECT_EQ(nlohmann::json((*decision)->config), config);
  const nlohmann::json tokens = {{"cls_token", "[C]"}, {"sep_token", "[S]"}, {"mask_token", "[M]"}};
  EXPECT_EQ(nlohmann::json((*decision)->tokens), tokens);
}

TEST(GgufDecision, RefusesLayaWithoutAKey) {
  for (const char* const key :
       {"tokenizer.chat_template.systemone", "modern-bert.block_count",
        "modern-bert.decision.block_count", "modern-bert.decision.max_head_tokens",
        "modern-bert.context_length", "modern-bert.embedding_length",
        "modern-bert.attention.head_count", "tokenizer.ggml.tokens",
        "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.mask_token_id"}) {
    EXPECT_THAT(LayaFile().Replace(key).Refusal(),
                AllOf(HasSubstr("'" + std::string(key) + "'"), HasSubstr("is missing")));
  }
  EXPECT_THAT(LayaFile().Replace("tokenizer.ggml.bos_token_id").Refusal(),
              HasSubstr("'tokenizer.ggml.cls_token_id' is missing"));
}

TEST(GgufDecision, RefusesLayaWithOtherValues) {
  EXPECT_THAT(WithInt("modern-bert.decision.block_count", 5).Refusal(),
              HasSubstr("'modern-bert.decision.block_count' is 5; 1 to 4 are allowed"));
  EXPECT_THAT(WithInt("modern-bert.decision.block_count", 0).Refusal(),
              HasSubstr("'modern-bert.decision.block_count' is 0"));
  EXPECT_THAT(WithInt("modern-bert.block_count", 0xffffffff).Refusal(),
              HasSubstr("'modern-bert.block_count' is 4294967295"));
  EXPECT_THAT(WithInt("modern-bert.decision.max_head_tokens", 0).Refusal(),
              HasSubstr("'modern-bert.decision.max_head_tokens' is 0"));
  EXPECT_THAT(WithInt("modern-bert.attention.head_count", 4).Refusal(),
              HasSubstr("'modern-bert.attention.head_count' is 4; the decision head has 2 heads"));
  EXPECT_THAT(WithInt("tokenizer.ggml.mask_token_id", 3).Refusal(),
              HasSubstr("'tokenizer.ggml.mask_token_id' is 3; there are 3 tokens"));
  // The prompt is that of the file's own tokens.
  EXPECT_THAT(WithInt("tokenizer.ggml.mask_token_id", 1).Refusal(),
              HasSubstr("'tokenizer.chat_template.systemone' is not Laya's prompt"));
  const std::string cold = "modern-bert.decision.temperature.noul.2";
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    LayaFile file;
    file.Replace(cold, [&](GgufBuilder* b) { b->Float(cold, value); });
    EXPECT_THAT(file.Refusal(), HasSubstr("'" + cold + "' must be a number above 0, and finite"));
  }
}

TEST(GgufDecision, RefusesLayaOnAnotherEncoder) {
  LayaFile file;
  file.Replace("general.architecture", [](GgufBuilder* b) {
    b->Text("general.architecture", "bert").Text("bert.decision.type", "laya");
  });
  EXPECT_THAT(file.Refusal(), AllOf(HasSubstr("'bert.decision.type'"), HasSubstr("modern-bert")));
}

}  // namespace
}  // namespace skein
