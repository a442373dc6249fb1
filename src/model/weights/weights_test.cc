#include "model/weights/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors_writer.h"
#include "model/weights/random_model.h"
#include "testing/tensor_bytes.h"

namespace skein {
namespace {

// A Llama of two layers with odd sizes. Element (row, column) of tensor t is a small number,
// distinct within the tensor.
class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() {
    config_.architecture = Architecture::kQwen3;
    config_.vocab_size = 37;
    config_.hidden_size = 20;
    config_.intermediate_size = 21;
    config_.num_layers = 2;
    config_.num_heads = 3;
    config_.num_kv_heads = 1;
    config_.head_dim = 6;
    config_.qkv_bias = config_.o_bias = config_.mlp_bias = config_.decoder.qk_norm = true;
    for (int i = 0; i < 2; ++i) AddLayer("model.layers." + std::to_string(i) + ".");
    Add("model.embed_tokens.weight", {37, 20});
    Add("model.norm.weight", {20});
    Add("lm_head.weight", {37, 20});
  }
  ~WeightsTest() override { std::filesystem::remove_all(dir_); }

  void Add(std::string name, std::vector<int64_t> shape) {
    tensors_.push_back({std::move(name), dtype_, std::move(shape)});
  }
  void AddLayer(const std::string& prefix) {
    Add(prefix + "input_layernorm.weight", {20});
    Add(prefix + "post_attention_layernorm.weight", {20});
    const auto linear = [&](const std::string& name, int64_t rows, int64_t columns) {
      Add(prefix + name + ".weight", {rows, columns});
      Add(prefix + name + ".bias", {rows});
    };
    linear("self_attn.q_proj", 18, 20);
    linear("self_attn.k_proj", 6, 20);
    linear("self_attn.v_proj", 6, 20);
    linear("self_attn.o_proj", 20, 18);
    Add(prefix + "self_attn.q_norm.weight", {6});
    Add(prefix + "self_attn.k_norm.weight", {6});
    linear("mlp.gate_proj", 21, 20);
    linear("mlp.up_proj", 21, 20);
    linear("mlp.down_proj", 20, 21);
  }

  TensorSpec& Tensor(const std::string& name) {
    for (TensorSpec& tensor : tensors_) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no " << name;
    return tensors_[0];
  }

  static float Value(size_t tensor, int64_t element) {
    return static_cast<float>(tensor) + static_cast<float>(element) / 1024;
  }

  // The tensor with the same values: the embedding, if the output matrix is a copy of it.
  size_t SourceOf(size_t tensor) {
    const bool copies = output_is_copy_ && tensors_[tensor].name == "lm_head.weight";
    return copies ? &Tensor("model.embed_tokens.weight") - tensors_.data() : tensor;
  }

  Result<ModelWeights> WriteAndLoad(DType compute) {
    std::filesystem::create_directories(dir_);
    SKEIN_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Create(dir_, tensors_, int64_t{1} << 30));
    for (size_t t = 0; t < tensors_.size(); ++t) {
      for (int64_t i = 0; i < tensors_[t].num_elements(); ++i) {
        const float value = Value(SourceOf(t), i);
        std::byte bytes[4];
        if (tensors_[t].dtype == DType::kF32) {
          std::memcpy(bytes, &value, 4);
        } else {
          const uint16_t bits =
              tensors_[t].dtype == DType::kBf16 ? ToBf16(value).bits : ToF16(value).bits;
          std::memcpy(bytes, &bits, 2);
        }
        const size_t size = SizeOf(tensors_[t].dtype);
        SKEIN_RETURN_IF_ERROR(
            writer.Write(t, i * static_cast<int64_t>(size), std::span(bytes).first(size)));
      }
    }
    SKEIN_RETURN_IF_ERROR(writer.Close());
    return LoadWeights(dir_, config_, compute, team_, {});
  }

  // The value, rounded to the file's type and then to the compute type.
  float Rounded(const std::string& name, int64_t element, DType compute) {
    const TensorSpec& tensor = Tensor(name);
    float value = Value(&tensor - tensors_.data(), element);
    if (tensor.dtype == DType::kBf16) value = ToFloat(ToBf16(value));
    if (tensor.dtype == DType::kF16) value = ToFloat(ToF16(value));
    return compute == DType::kBf16 ? ToFloat(ToBf16(value)) : value;
  }

  void ExpectRow(const PackedWeight& weight, int32_t row, const std::string& name,
                 int32_t tensor_row) {
    std::vector<float> actual(weight.k());
    weight.UnpackRow(row, actual.data());
    for (int32_t i = 0; i < weight.k(); ++i) {
      ASSERT_EQ(actual[i], Rounded(name, int64_t{tensor_row} * weight.k() + i, weight.dtype()))
          << name << " row " << tensor_row << ", column " << i;
    }
  }

  void ExpectLoaded(const ModelWeights& w) {
    const std::string layer = "model.layers.1.";
    for (int32_t r = 0; r < 18; ++r) {
      ExpectRow(w.layers[1].qkv, r, layer + "self_attn.q_proj.weight", r);
    }
    for (int32_t r = 0; r < 6; ++r) {
      ExpectRow(w.layers[1].qkv, 18 + r, layer + "self_attn.k_proj.weight", r);
      ExpectRow(w.layers[1].qkv, 24 + r, layer + "self_attn.v_proj.weight", r);
      EXPECT_EQ(w.layers[1].qkv_bias[18 + r],
                Rounded(layer + "self_attn.k_proj.bias", r, DType::kF32));
    }
    ASSERT_EQ(w.config.intermediate_padded(), 32);
    for (int32_t r = 0; r < 21; ++r) {
      ExpectRow(w.layers[1].gate_up, r, layer + "mlp.gate_proj.weight", r);
      ExpectRow(w.layers[1].gate_up, 32 + r, layer + "mlp.up_proj.weight", r);
      EXPECT_EQ(w.layers[1].gate_up_bias[32 + r],
                Rounded(layer + "mlp.up_proj.bias", r, DType::kF32));
    }
    for (int32_t r = 0; r < 20; ++r) {
      ExpectRow(w.layers[1].o, r, layer + "self_attn.o_proj.weight", r);
      ExpectRow(w.layers[1].down, r, layer + "mlp.down_proj.weight", r);
    }
    for (int32_t id = 0; id < 37; ++id) {
      ExpectRow(w.output, id,
                config_.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", id);
      std::vector<float> row(20);
      w.EmbeddingRow(id, row.data());
      for (int32_t i = 0; i < 20; ++i) {
        ASSERT_EQ(row[i], Rounded("model.embed_tokens.weight", id * 20 + i, w.dtype));
      }
    }
    EXPECT_EQ(w.final_norm[7], Rounded("model.norm.weight", 7, DType::kF32));
    EXPECT_EQ(w.layers[0].k_norm[5],
              Rounded("model.layers.0.self_attn.k_norm.weight", 5, DType::kF32));
  }

  void ExpectRefused(const std::vector<std::string>& words) {
    const auto weights = WriteAndLoad(DType::kF32);
    ASSERT_FALSE(weights.ok());
    EXPECT_EQ(weights.status().code(), StatusCode::kInvalidArgument);
    for (const std::string& word : words) {
      EXPECT_NE(weights.status().message().find(word), std::string::npos)
          << weights.status().message() << " lacks " << word;
    }
  }

  const std::string dir_ = ::testing::TempDir() + "/skein_weights_test_" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  DType dtype_ = DType::kF32;
  ModelConfig config_;
  bool output_is_copy_ = false;
  std::vector<TensorSpec> tensors_;
  ThreadTeam team_{2};
};

TEST_F(WeightsTest, EveryTypeOfFileInEveryComputeType) {
  for (const DType file : {DType::kF32, DType::kBf16, DType::kF16}) {
    for (TensorSpec& tensor : tensors_) tensor.dtype = file;
    for (const DType compute : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE(std::string(NameOf(file)) + " in " + NameOf(compute));
      const auto weights = WriteAndLoad(compute);
      ASSERT_TRUE(weights.ok()) << weights.status().message();
      ExpectLoaded(weights.value());
    }
  }
}

TEST_F(WeightsTest, TiedEmbeddingsAreStoredOnce) {
  const size_t untied_bytes = WriteAndLoad(DType::kF32).value().bytes();
  config_.tie_embeddings = true;
  output_is_copy_ = true;
  const auto weights = WriteAndLoad(DType::kF32);  // a redundant lm_head.weight does no harm
  ASSERT_TRUE(weights.ok());
  EXPECT_TRUE(weights.value().config.tie_embeddings);
  ExpectLoaded(weights.value());
  EXPECT_EQ(untied_bytes - weights.value().bytes(), size_t{37} * 20 * 4);
  std::erase_if(tensors_, [](const TensorSpec& t) { return t.name == "lm_head.weight"; });
  EXPECT_TRUE(WriteAndLoad(DType::kF32).ok());
}

// As in transformers 5, both matrices are kept if the config ties them but the file has two
// different ones.
TEST_F(WeightsTest, AnOutputMatrixOfItsOwnIsKept) {
  const size_t untied_bytes = WriteAndLoad(DType::kF32).value().bytes();
  config_.tie_embeddings = true;
  const auto weights = WriteAndLoad(DType::kF32);
  ASSERT_TRUE(weights.ok());
  EXPECT_FALSE(weights.value().config.tie_embeddings);
  EXPECT_EQ(weights.value().bytes(), untied_bytes);
  config_.tie_embeddings = false;
  ExpectLoaded(weights.value());
}

TEST_F(WeightsTest, MixedTypesInOneFile) {
  Tensor("model.layers.1.self_attn.k_proj.weight").dtype = DType::kBf16;
  Tensor("model.norm.weight").dtype = DType::kF16;
  const auto weights = WriteAndLoad(DType::kF32);
  ASSERT_TRUE(weights.ok());
  ExpectLoaded(weights.value());
}

TEST_F(WeightsTest, NamesWhatIsMissing) {
  const std::string name = "model.layers.1.mlp.up_proj.bias";
  std::erase_if(tensors_, [&](const TensorSpec& t) { return t.name == name; });
  ExpectRefused({name, "[21]"});
}

TEST_F(WeightsTest, NamesBothShapes) {
  Tensor("model.layers.0.self_attn.o_proj.weight").shape = {18, 20};
  ExpectRefused({"model.layers.0.self_attn.o_proj.weight", "[18, 20]", "[20, 18]"});
  Tensor("model.layers.0.self_attn.o_proj.weight").shape = {20, 18};
  Tensor("lm_head.weight").shape = {38, 20};
  ExpectRefused({"lm_head.weight", "[38, 20]", "[37, 20]"});
}

TEST_F(WeightsTest, UnknownTensorsAreNoError) {
  Add("model.layers.0.self_attn.rotary_emb.inv_freq", {3});
  Add("score.weight", {2, 20});
  EXPECT_TRUE(WriteAndLoad(DType::kF32).ok());
}

// The KiB of a mapped file that are in this process's memory; -1: the file is not mapped.
int64_t ResidentKib(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  int64_t kib = -1;
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    // A mapping's first line begins with its addresses. The lines with its numbers begin with a
    // name.
    if (line.find('-') < line.find(' ')) {
      ours = line.ends_with(path);
      if (ours) kib = std::max<int64_t>(kib, 0);
    } else if (ours && line.starts_with("Rss:")) {
      kib += std::stoll(line.substr(4));
    }
  }
  return kib;
}

// The memory is measured while the files are still mapped. Reading a later vector may bring back
// pages around it, 64 KiB at a time, and the pages of vectors stay in memory.
TEST(WeightsMemoryTest, WhatIsPackedLeavesTheMemory) {
  constexpr char kConfig[] = R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
      "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 1,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "hidden_act": "silu",
      "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 256,
      "tie_word_embeddings": false, "attention_bias": false, "torch_dtype": "bfloat16",
      "vocab_size": 4096, "eos_token_id": 2})";
  constexpr int64_t kLargestKib = 4096;  // the embedding and the output matrix
  constexpr int64_t kSlackKib = 2048;
  const std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("skein_weights_" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  const ModelConfig config = ParseModelConfig(kConfig).value();
  ThreadTeam team(2);
  ASSERT_TRUE(WriteRandomWeights(config, {}, dir.string(), &team, {}).ok());
  const std::string path = std::filesystem::canonical(dir / "model.safetensors").string();
  {
    const auto files = ModelFiles::Open(dir.string());
    ASSERT_TRUE(files.ok()) << files.status().message();
    ASSERT_GT(skein::testing::TensorBytes(files.value()), 2 * (kLargestKib + kSlackKib) << 10);
    // The measure works: a tensor is in memory after it has been read.
    const TensorView view = files.value().Find("model.embed_tokens.weight").value();
    ASSERT_EQ(view.bytes, size_t{kLargestKib} << 10);
    ASSERT_NE(std::count(view.data, view.data + view.bytes, std::byte{0}), int64_t(view.bytes));
    ASSERT_GE(ResidentKib(path), kLargestKib);
    ModelFiles::ReleasePages(view);
    ASSERT_LT(ResidentKib(path), kSlackKib);
    int64_t most_kib = 0;
    const auto weights =
        LoadWeights(files.value(), config, DType::kBf16, team,
                    [&](int64_t, int64_t) { most_kib = std::max(most_kib, ResidentKib(path)); });
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    EXPECT_LT(most_kib, kLargestKib + kSlackKib);
    EXPECT_LT(ResidentKib(path), kSlackKib);
  }
  EXPECT_EQ(ResidentKib(path), -1);
  std::filesystem::remove_all(dir);
}

TEST(ComputeTypeTest, FollowsTheFileUnlessToldOtherwise) {
  EXPECT_EQ(ChooseComputeType(ComputeChoice::kAuto, DType::kF32), DType::kF32);
  EXPECT_EQ(ChooseComputeType(ComputeChoice::kAuto, DType::kBf16), DType::kBf16);
  EXPECT_EQ(ChooseComputeType(ComputeChoice::kAuto, DType::kF16), DType::kBf16);
  EXPECT_EQ(ChooseComputeType(ComputeChoice::kF32, DType::kF16), DType::kF32);
  EXPECT_EQ(ChooseComputeType(ComputeChoice::kBf16, DType::kF32), DType::kBf16);
}

}  // namespace
}  // namespace skein
