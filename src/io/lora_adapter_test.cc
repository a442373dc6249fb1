#include "io/lora_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "io/safetensors_writer.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kA[] = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
constexpr char kB[] = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";
constexpr char kWeight[] = "model.layers.0.self_attn.q_proj.weight";

class LoraAdapterTest : public ::testing::Test {
 protected:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           ("skein_lora_" + std::to_string(getpid()) +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
    Config("");
    Tensors({{kA, {2, 3}, {1, 2, 3, 4, 5, 6}}, {kB, {2, 2}, {1, 0, 10, 100}}});
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Config(const std::string& more, const std::string& modules = R"(["q_proj"])") {
    std::ofstream(dir_ / "adapter_config.json")
        << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_dora": false,)"
        << R"( "rank_pattern": {}, "modules_to_save": null, "target_modules": )" << modules << more
        << "}";
  }
  void Tensors(const std::vector<Tensor>& tensors) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors) specs.push_back({tensor.name, DType::kF32, tensor.shape});
    Result<SafetensorsWriter> writer = SafetensorsWriter::Create(dir_, specs, 1 << 20);
    ASSERT_TRUE(writer.ok());
    for (size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_TRUE(writer->Write(i, 0, std::as_bytes(std::span(tensors[i].values))).ok());
    }
    ASSERT_TRUE(writer->Close().ok());
    fs::rename(dir_ / "model.safetensors", dir_ / "adapter_model.safetensors");
  }
  Result<LoraAdapter> Open() { return LoraAdapter::Open(dir_); }
  std::string Message() { return Open().status().message(); }

  fs::path dir_;
};

TEST_F(LoraAdapterTest, AddsTheScaledProduct) {
  Config(R"(, "decision_temperature": 2.5)");
  const Result<LoraAdapter> adapter = Open();
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(adapter.value().decision_temperature(), 2.5);
  EXPECT_THAT(adapter.value().Weights(),
              ElementsAre(std::pair(std::string(kWeight), std::vector<int64_t>{2, 3})));
  ASSERT_NE(adapter.value().Find(kWeight), nullptr);
  EXPECT_EQ(adapter.value().Find("model.norm.weight"), nullptr);
  float rows[6] = {0.5f};
  adapter.value().AddTo(kWeight, 0, 2, rows);
  // B A is [[1, 2, 3], [410, 520, 630]], and the scale is 4 / 2.
  EXPECT_THAT(rows, ElementsAre(2.5f, 4, 6, 820, 1040, 1260));
  float second[3] = {};
  adapter.value().AddTo(kWeight, 1, 1, second);
  EXPECT_THAT(second, ElementsAre(820, 1040, 1260));
}

TEST_F(LoraAdapterTest, RankStabilizedScale) {
  Config(R"(, "use_rslora": true)");
  float row[3] = {};
  Open().value().AddTo(kWeight, 0, 1, row);
  const auto scale = static_cast<float>(4 / std::sqrt(2.0));
  EXPECT_THAT(row, ElementsAre(scale, scale * 2, scale * 3));
}

TEST_F(LoraAdapterTest, RefusesOtherAdapters) {
  for (const auto& [member, word] : std::vector<std::pair<std::string, std::string>>{
           {R"("lora_bias": true)", "lora_bias"},
           {R"("alpha_pattern": {"q_proj": 3})", "alpha_pattern"},
           {R"("target_parameters": ["x"])", "target_parameters"},
           {R"("fan_in_fan_out": true)", "fan_in_fan_out"},
           {R"("decision_temperature": 0)", "decision_temperature"},
           {R"("use_rslora": 1)", "use_rslora"}}) {
    Config(", " + member);
    EXPECT_THAT(Message(), HasSubstr(word));
  }
  Config("", "\"all-linear\"");
  EXPECT_THAT(Message(), HasSubstr("target_modules"));
  Config("", R"(["v_proj"])");
  EXPECT_THAT(Message(), HasSubstr("belongs to none of target_modules"));
  Config("", R"(["q_proj", "v_proj"])");
  EXPECT_THAT(Message(), HasSubstr("'v_proj'"));
  std::ofstream(dir_ / "adapter_config.json") << R"({"r": 0})";
  EXPECT_THAT(Message(), HasSubstr("'r'"));
  fs::remove(dir_ / "adapter_config.json");
  EXPECT_EQ(Open().status().code(), StatusCode::kNotFound);
}

TEST_F(LoraAdapterTest, RefusesOtherTensors) {
  const Tensor a{kA, {2, 3}, std::vector<float>(6)}, b{kB, {2, 2}, std::vector<float>(4)};
  Tensors({a});
  EXPECT_THAT(Message(), HasSubstr("has no lora_B"));
  Tensors({b});
  EXPECT_THAT(Message(), HasSubstr("has no lora_A"));
  Tensors({a, b, {"base_model.model.model.norm.weight", {2}, {1, 2}}});
  EXPECT_THAT(Message(), HasSubstr("'base_model.model.model.norm.weight' is no LoRA matrix"));
  Tensors({{kA, {3, 2}, std::vector<float>(6)}, b});
  EXPECT_THAT(Message(), HasSubstr("has shape [3, 2]; r is 2"));
  Tensors({a, {kB, {2, 1}, std::vector<float>(2)}});
  EXPECT_THAT(Message(), HasSubstr("has shape [2, 1]; r is 2"));
}

}  // namespace
}  // namespace skein
