#include "apps/gguf/gguf_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/model/model_info.h"
#include "io/safetensors_writer.h"
#include "testing/tiny_gguf.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::skein::testing::GgufBuilder;
using ::skein::testing::TinyGguf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GgufConvertTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("skein_convert_" + std::to_string(getpid()) +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
    options_.file = root_ / "model.gguf";
    options_.dir = root_ / "model";
    options_.dtype = DType::kF32;
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<GgufConvertSummary> Convert(TinyGguf gguf) {
    std::ofstream(options_.file, std::ios::binary) << gguf.Build();
    options_.force = true;
    return ConvertGguf(options_);
  }
  // The error message for a file with this change.
  std::string Refusal(const std::function<void(TinyGguf*)>& change) {
    TinyGguf gguf;
    change(&gguf);
    fs::remove_all(options_.dir);
    const Result<GgufConvertSummary> summary = Convert(gguf);
    EXPECT_FALSE(fs::exists(options_.dir));
    return summary.status().message();
  }
  // The first element of each row of a weight, divided by the row's length, which tells the row's
  // number in the file.
  std::vector<float> RowsOf(const std::string& name) {
    const Result<ModelFiles> files = ModelFiles::Open(options_.dir);
    EXPECT_TRUE(files.ok()) << files.status().message();
    const Result<TensorView> view = files.value().Find(name);
    EXPECT_TRUE(view.ok()) << view.status().message();
    std::vector<float> rows;
    for (int64_t row = 0; row < view.value().shape[0]; ++row) {
      float value;
      std::memcpy(&value, view.value().data + row * view.value().shape[1] * 4, 4);
      rows.push_back(value / static_cast<float>(view.value().shape[1]));
    }
    return rows;
  }
  nlohmann::json Read(const std::string& name) {
    return nlohmann::json::parse(std::ifstream(root_ / "model" / name));
  }
  void WriteAdapter(const std::string& weight, int64_t num_outputs, int64_t num_inputs) {
    const std::string adapter = root_ / "adapter";
    fs::create_directories(adapter);
    std::ofstream(adapter + "/adapter_config.json")
        << R"({"r": 1, "lora_alpha": 2, "target_modules": ["q_proj"], )"
        << R"("decision_temperature": 1.5})";
    const std::string name = "base_model.model." + weight;
    Result<SafetensorsWriter> writer =
        SafetensorsWriter::Create(adapter,
                                  {{name + ".lora_A.weight", DType::kF32, {1, num_inputs}},
                                   {name + ".lora_B.weight", DType::kF32, {num_outputs, 1}}},
                                  1 << 20);
    const std::vector<float> a(static_cast<size_t>(num_inputs), 1);
    std::vector<float> b;
    for (int64_t i = 0; i < num_outputs; ++i) b.push_back(static_cast<float>(1000 * i));
    ASSERT_TRUE(writer->Write(0, 0, std::as_bytes(std::span(a))).ok());
    ASSERT_TRUE(writer->Write(1, 0, std::as_bytes(std::span(b))).ok());
    ASSERT_TRUE(writer->Close().ok());
    fs::rename(adapter + "/model.safetensors", adapter + "/adapter_model.safetensors");
    options_.adapter_dir = adapter;
  }

  fs::path root_;
  GgufConvertOptions options_;
};

TEST_F(GgufConvertTest, IsAWholeModel) {
  const Result<GgufConvertSummary> summary = Convert({});
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Result<ModelInfo> info = DescribeModel(options_.dir);
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_THAT(info.value().problems, IsEmpty());
  EXPECT_TRUE(info.value().config.tie_embeddings);
  EXPECT_EQ(info.value().config.head_dim, 4);
  EXPECT_EQ(info.value().config.decoder.rms_norm_eps, 1e-5f);
  EXPECT_TRUE(info.value().has_chat_template);
  EXPECT_EQ(summary.value().num_parameters, info.value().config.NumParameters());
  EXPECT_EQ(Read("config.json")["rms_norm_eps"].dump(), "1e-05");
  EXPECT_EQ(Read("generation_config.json")["eos_token_id"], 0);
  EXPECT_THAT(RowsOf("model.embed_tokens.weight"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));

  TinyGguf untied;
  untied.tied = false;
  ASSERT_TRUE(Convert(untied).ok());
  EXPECT_THAT(DescribeModel(options_.dir).value().problems, IsEmpty());
  EXPECT_THAT(RowsOf("lm_head.weight"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(GgufConvertTest, HalvesOfHeadsAreTakenApart) {
  ASSERT_TRUE(Convert({}).ok());
  EXPECT_THAT(RowsOf("model.layers.0.self_attn.q_proj.weight"),
              ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(RowsOf("model.layers.0.self_attn.k_proj.weight"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(RowsOf("model.layers.0.self_attn.v_proj.weight"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(RowsOf("model.layers.0.self_attn.o_proj.weight"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(GgufConvertTest, TheTokenizerReadsText) {
  ASSERT_TRUE(Convert({}).ok());
  const auto tokenizer = Tokenizer::Load(options_.dir);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::vector<TokenId> ids;
  ASSERT_TRUE(tokenizer.value()->Encode("ab 12<end><user>", true, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(3, 6, 4, 5, 0, 7));
  EXPECT_TRUE(tokenizer.value()->IsSpecial(0));
  EXPECT_FALSE(tokenizer.value()->IsSpecial(7));
  EXPECT_EQ(tokenizer.value()->eos_id(), 0);
  EXPECT_TRUE(ChatTemplate::Load(options_.dir).ok());
}

TEST_F(GgufConvertTest, TokensAroundATextAreInTheTokenizer) {
  TinyGguf gguf;
  gguf.builder.Int("tokenizer.ggml.bos_token_id", 7)
      .Bool("tokenizer.ggml.add_bos_token", true)
      .Bool("tokenizer.ggml.add_eos_token", true);
  ASSERT_TRUE(Convert(gguf).ok());
  const auto tokenizer = Tokenizer::Load(options_.dir);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::vector<TokenId> ids;
  ASSERT_TRUE(tokenizer.value()->Encode("ab", true, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(7, 3, 0));
}

TEST_F(GgufConvertTest, RopeScalingsAreThoseOfTheConfig) {
  TinyGguf linear;
  linear.builder.Text("llama.rope.scaling.type", "linear").Float("llama.rope.scaling.factor", 2);
  ASSERT_TRUE(Convert(linear).ok());
  EXPECT_EQ(DescribeModel(options_.dir).value().config.rope.type, RopeType::kLinear);
  EXPECT_EQ(DescribeModel(options_.dir).value().config.rope.factor, 2);

  // The frequencies are 1 and 1e-4. Llama 3.2's scaling keeps the first and divides the second by
  // 32.
  TinyGguf llama3;
  llama3.builder.Float("llama.rope.freq_base", 1e8f)
      .Tensor("rope_freqs.weight", {2}, 0, GgufBuilder::Bytes(1.0f) + GgufBuilder::Bytes(32.0f));
  const Result<GgufConvertSummary> summary = Convert(llama3);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(DescribeModel(options_.dir).value().config.rope.type, RopeType::kLlama3);
  EXPECT_EQ(DescribeModel(options_.dir).value().config.rope.factor, 32);
}

TEST_F(GgufConvertTest, AnAdapterIsAddedInTheModelsOrder) {
  WriteAdapter("model.layers.0.self_attn.q_proj", 8, 8);
  const Result<GgufConvertSummary> summary = Convert({});
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  // The adapter adds 2 * 1000 i to row i of the model, whose order of rows is not the file's.
  EXPECT_THAT(RowsOf("model.layers.0.self_attn.q_proj.weight"),
              ElementsAre(0, 252, 501, 753, 1004, 1256, 1505, 1757));
  EXPECT_EQ(Read("config.json")["decision_temperature"], 1.5);

  WriteAdapter("model.layers.0.self_attn.q_proj", 8, 16);
  EXPECT_THAT(Refusal([](TinyGguf*) {}), HasSubstr("of shape [8, 16]; the model's is [8, 8]"));
  WriteAdapter("model.layers.1.self_attn.q_proj", 8, 8);
  EXPECT_THAT(Refusal([](TinyGguf*) {}), HasSubstr("'model.layers.1.self_attn.q_proj.weight'"));
}

TEST_F(GgufConvertTest, Bf16IsRoundedOnce) {
  options_.dtype = DType::kBf16;
  WriteAdapter("model.layers.0.self_attn.q_proj", 8, 8);
  ASSERT_TRUE(Convert({}).ok());
  const Result<ModelFiles> files = ModelFiles::Open(options_.dir);
  const Result<TensorView> view = files.value().Find("model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(view.value().dtype, DType::kBf16);
  // Row 7, element 7: 63 from the file plus 2 * 7000 from the adapter.
  Bf16 last;
  std::memcpy(&last.bits, view.value().data + view.value().bytes - 2, 2);
  EXPECT_EQ(last.bits, ToBf16(14063.0f).bits);
}

TEST_F(GgufConvertTest, RefusesByName) {
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->architecture = "gemma9"; }), HasSubstr("'gemma9'"));
  for (const char* type : {"laya", "clef", "lfm2-d1"}) {
    EXPECT_THAT(Refusal([&](TinyGguf* g) { g->builder.Text("llama.decision.type", type); }),
                AllOf(HasSubstr("'llama.decision.type'"), HasSubstr("'" + std::string(type) + "'"),
                      HasSubstr("decision-models.md")));
  }
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->tokenizer = "rwkv"; }),
              HasSubstr("'rwkv'; supported are gpt2, llama, bert and t5"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->pre = "tekken"; }),
              HasSubstr("'tekken'; supported are gpt-2, llama-bpe, qwen2, smollm"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->without = "blk.0.ffn_up.weight"; }),
              HasSubstr("'blk.0.ffn_up.weight'"));
  EXPECT_THAT(Refusal([](TinyGguf* g) {
                g->builder.Tensor("rope_freqs.weight", {2}, 0, std::string(8, '\0'));
              }),
              HasSubstr("'rope_freqs.weight' is not the table of Llama 3.1"));
  EXPECT_THAT(Refusal([](TinyGguf* g) {
                g->builder.Tensor("rope_freqs.weight", {3}, 0, std::string(12, '\0'));
              }),
              HasSubstr("'rope_freqs.weight' must have 2 elements"));
  EXPECT_THAT(Refusal([](TinyGguf* g) {
                g->builder.Tensor("blk.0.attn_sinks", {1}, 0, std::string(4, '\0'));
              }),
              HasSubstr("'blk.0.attn_sinks' is not one of this architecture's"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->q_rows = 12; }),
              HasSubstr("'blk.0.attn_q.weight' has shape [12, 8]"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Text("llama.rope.scaling.type", "su"); }),
              HasSubstr("llama.rope.scaling.type' is 'su'"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Text("llama.rope.scaling.type", "yarn"); }),
              HasSubstr("llama.rope.scaling.factor' is missing"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Int("llama.rope.dimension_count", 2); }),
              HasSubstr("llama.rope.dimension_count' is 2"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Int("llama.expert_count", 8); }),
              HasSubstr("llama.expert_used_count' is missing"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Bool("tokenizer.ggml.add_bos_token", true); }),
              HasSubstr("bos_token_id' is missing, but tokenizer.ggml.add_bos_token is true"));
  EXPECT_THAT(Refusal([](TinyGguf* g) {
                g->tokenizer = "llama";
                g->builder.Bool("tokenizer.ggml.add_bos_token", false);
              }),
              HasSubstr("tokenizer.ggml.scores' is missing"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->builder.Int("tokenizer.ggml.bos_token_id", 8); }),
              HasSubstr("bos_token_id"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->types.pop_back(); }), HasSubstr("has 7 elements"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->types[1] = 7; }), HasSubstr("holds 7 for token 1"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->tokens[1] = "b"; }), HasSubstr("holds 'b' twice"));
  EXPECT_THAT(Refusal([](TinyGguf* g) { g->tokens[1] = "\xff"; }), HasSubstr("at index 1"));
  EXPECT_THAT(Refusal([](TinyGguf* g) {
                g->tokens.push_back("c");
                g->types.push_back(1);
              }),
              HasSubstr("has 9 tokens, the embedding only 8"));
}

TEST_F(GgufConvertTest, KeepsWhatIsInTheDirectory) {
  ASSERT_TRUE(Convert({}).ok());
  options_.force = false;
  EXPECT_THAT(ConvertGguf(options_).status().message(), HasSubstr("is not empty"));
}

}  // namespace
}  // namespace skein
