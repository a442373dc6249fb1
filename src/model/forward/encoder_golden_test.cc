// Encoders, compared with golden files of the reference library (tools/make_golden_encoders.py),
// and their numeric contract: batches, threads and instruction sets change no bit.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testing/loaded_model.h"
#include "testing/minilm.h"

namespace skein {
namespace {

using testing::LoadedModel;
using Json = nlohmann::json;
using EncodedRows = std::vector<std::vector<float>>;

constexpr int32_t kMaxGoldenTokens = 700;  // for all prompts of a golden file

struct Prompt {
  std::vector<int32_t> ids;
  int32_t second_segment_begin = std::numeric_limits<int32_t>::max();
};

Prompt PromptOf(const Json& golden) {
  Prompt prompt;
  prompt.ids = golden["ids"].get<std::vector<int32_t>>();
  if (!golden["second_segment_begin"].is_null()) {
    prompt.second_segment_begin = golden["second_segment_begin"];
  }
  return prompt;
}

// Runs the prompts as one batch. Returns the embedding, or the classes, of each prompt. Before each
// layer but the first one it calls OverwriteKv of `overwritten`, if that is the model and not null.
EncodedRows Encode(const LoadedModel& model, const std::vector<Prompt>& prompts,
                   std::optional<Pooling> pooling, LoadedModel* overwritten = nullptr) {
  ForwardContext context = model.context();
  context.pooling = pooling.value_or(Pooling::kCls);
  ForwardPass pass(context, {.max_tokens = kMaxGoldenTokens, .max_logit_rows = 3});
  ForwardBatch& batch = pass.batch();
  std::vector<std::vector<int32_t>> blocks;
  int32_t block = 0;
  for (const Prompt& prompt : prompts) {
    blocks.push_back(testing::Blocks(block, static_cast<int32_t>(prompt.ids.size())));
    block += static_cast<int32_t>(blocks.back().size());
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    batch.AddRow(prompts[i].ids, 0, blocks[i], false);
    batch.rows.back().second_segment_begin = prompts[i].second_segment_begin;
    (pooling ? batch.embedded_rows : batch.classified_rows).push_back(static_cast<int32_t>(i));
  }
  const int32_t width = pooling ? model.config().hidden_size : model.config().num_classes;
  EncodedRows rows;
  std::atomic<bool>* const stop = overwritten ? &overwritten->kernels().stop() : nullptr;
  int num_stops = 0;
  pass.Begin();
  for (;;) {
    if (overwritten) overwritten->kernels().StopAfter(0);
    const ForwardStatus status = pass.Run(stop, StopAt::kLayer);
    if (stop != nullptr) stop->store(false);
    if (status == ForwardStatus::kDone) break;
    if (status == ForwardStatus::kStopped) {
      overwritten->OverwriteKv();
      ++num_stops;
      continue;
    }
    for (int32_t i = 0; i < pass.chunk().count; ++i) {
      rows.emplace_back(pass.output(i), pass.output(i) + width);
    }
  }
  if (overwritten) {
    EXPECT_GE(num_stops, model.config().num_layers - 1);
  }
  return rows;
}

std::vector<std::string> EncoderDirs() {
  std::vector<std::string> dirs;
  for (const auto& entry :
       std::filesystem::directory_iterator(SKEIN_SOURCE_DIR "/tests/data/encoders")) {
    if (entry.is_directory()) dirs.push_back(entry.path().string());
  }
  std::sort(dirs.begin(), dirs.end());
  return dirs;
}

class EncoderGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  EncoderGoldenTest() {
    std::ifstream file(GetParam() + "/golden.json");
    prompts_ = Json::parse(file)["prompts"].get<std::vector<Json>>();
  }

  // The largest difference between an element of a hidden state or output and the reference's,
  // divided by the number of layers, since the roundings of layers add up. LayerNorm keeps elements
  // near 1, so the error is also relative to the unit of the type.
  double WorstErrorPerLayer(const std::string& dtype) {
    EXPECT_FALSE(prompts_.empty());
    const LoadedModel model(GetParam(), {.dtype = dtype});
    double worst = 0;
    const auto compare = [&](const Json& golden, const EncodedRows& rows) {
      ASSERT_EQ(rows.size(), 1u);
      ASSERT_EQ(rows[0].size(), golden.size());
      for (size_t d = 0; d < golden.size(); ++d) {
        worst = std::max(worst, std::abs(rows[0][d] - golden[d].get<double>()));
      }
    };
    for (const Json& golden : prompts_) {
      const std::vector<Prompt> prompt = {PromptOf(golden)};
      compare(golden["first"], Encode(model, prompt, Pooling::kCls));
      compare(golden["last"], Encode(model, prompt, Pooling::kLast));
      compare(golden["mean"], Encode(model, prompt, Pooling::kMean));
      EXPECT_EQ(golden.contains("outputs"), model.config().head == Head::kClassifier);
      if (golden.contains("outputs")) {
        compare(golden["outputs"], Encode(model, prompt, std::nullopt));
      }
    }
    std::printf("%s: worst error %g\n", dtype.c_str(), worst);
    return worst / model.config().num_layers;
  }

  std::vector<Json> prompts_;
};

TEST_P(EncoderGoldenTest, F32) { EXPECT_LT(WorstErrorPerLayer("f32"), 2.5e-6); }
TEST_P(EncoderGoldenTest, Bf16) { EXPECT_LT(WorstErrorPerLayer("bf16"), 0.02); }

TEST_P(EncoderGoldenTest, BatchesThreadsAndInstructionSetsChangeNoBit) {
  std::vector<Prompt> prompts;
  for (const Json& golden : prompts_) prompts.push_back(PromptOf(golden));
  struct Types {
    const char* dtype;
    const char* quantization;
  };
  for (const auto& [dtype, quantization] :
       {Types{"f32", "none"}, {"bf16", "none"}, {"f32", "int8"}, {"bf16", "int4"}}) {
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel scalar(GetParam(),
                               {.dtype = dtype, .quantization = quantization, .isa = Isa::kScalar});
      const LoadedModel threads(
          GetParam(), {.dtype = dtype, .quantization = quantization, .isa = isa, .threads = 3});
      std::vector<std::optional<Pooling>> reads = {Pooling::kCls, Pooling::kMean};
      if (scalar.config().head == Head::kClassifier) reads.push_back(std::nullopt);
      for (const std::optional<Pooling> pooling : reads) {
        EncodedRows alone;
        for (const Prompt& prompt : prompts) {
          alone.push_back(Encode(scalar, {prompt}, pooling).at(0));
        }
        ASSERT_EQ(Encode(threads, prompts, pooling), alone) << NameOf(isa);
      }
    }
  }
}

// All layers have the same memory of keys and values.
TEST_P(EncoderGoldenTest, NoLayerReadsKeysOfTheOneBefore) {
  std::vector<Prompt> prompts;
  for (const Json& golden : prompts_) prompts.push_back(PromptOf(golden));
  LoadedModel model(GetParam(), {.dtype = "f32"});
  const EncodedRows expected = Encode(model, prompts, Pooling::kMean);
  EXPECT_EQ(Encode(model, prompts, Pooling::kMean, &model), expected);
}

// The largest difference of an output from that of the weights in f32, over the outputs' range.
double LargestChange(const EncodedRows& rows, const EncodedRows& exact) {
  double change = 0, range = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t d = 0; d < rows[i].size(); ++d) {
      change = std::max(change, std::abs(double{rows[i][d]} - exact[i][d]));
      range = std::max(range, std::abs(double{exact[i][d]}));
    }
  }
  return change / range;
}

TEST_P(EncoderGoldenTest, QuantizedMatricesChangeOutputsByTheirRounding) {
  std::vector<Prompt> prompts;
  for (const Json& golden : prompts_) prompts.push_back(PromptOf(golden));
  const LoadedModel exact(GetParam(), {.dtype = "f32"});
  const EncodedRows expected = Encode(exact, prompts, Pooling::kMean);
  for (const auto& [quantization, largest] :
       {std::pair{"int8", 0.03}, {"q8_0", 0.03}, {"int4", 0.4}}) {
    const LoadedModel model(GetParam(), {.dtype = "f32", .quantization = quantization});
    // Blocks have 32 columns.
    const bool packed =
        quantization == std::string("int8") || model.config().hidden_size % kBlockTerms == 0;
    EXPECT_EQ(TakesInt8Rows(model.weights().layers[0].qkv.dtype()), packed);
    EXPECT_EQ(TakesInt8Rows(model.weights().layers[0].gate_up.dtype()), packed);
    if (!packed) continue;
    const double change = LargestChange(Encode(model, prompts, Pooling::kMean), expected);
    std::printf("%s: %g of the range\n", quantization, change);
    EXPECT_GT(change, 0);
    EXPECT_LT(change, largest);
  }
}

double Cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// The real model, compared with sentence-transformers (tools/make_golden_minilm.py).
TEST(MiniLmTest, CosineToTheReference) {
  SKEIN_REQUIRE_MINILM();
  std::ifstream file(SKEIN_SOURCE_DIR "/tests/data/minilm.json");
  const Json golden = Json::parse(file);
  for (const auto& [dtype, least] : {std::pair("f32", 0.999999), std::pair("bf16", 0.9999)}) {
    const LoadedModel model(testing::MiniLmDir(), {.dtype = dtype});
    double worst = 1;
    for (const Json& row : golden["rows"]) {
      const Prompt prompt = {row["ids"].get<std::vector<int32_t>>()};
      const std::vector<float> mean = Encode(model, {prompt}, Pooling::kMean).at(0);
      worst = std::min(
          worst, Cosine({mean.begin(), mean.end()}, row["embedding"].get<std::vector<double>>()));
    }
    std::printf("%s: least cosine %.9f\n", dtype, worst);
    EXPECT_GE(worst, least) << dtype;
  }
}

std::string NameOfEncoder(const ::testing::TestParamInfo<std::string>& param) {
  std::string name = std::filesystem::path(param.param).filename();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Encoders, EncoderGoldenTest, ::testing::ValuesIn(EncoderDirs()),
                         NameOfEncoder);

}  // namespace
}  // namespace skein
