// Encoders against golden files of the reference library (tools/make_golden_encoders.py), and the
// numeric contract for them: batches, threads and instruction sets change no bit.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testing/loaded_model.h"
#include "testing/minilm.h"

namespace skein {
namespace {

using testing::LoadedModel;
using Json = nlohmann::json;
using Rows = std::vector<std::vector<float>>;  // [num_tokens][hidden]

constexpr int32_t kMaxTokens = 320;

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

// The prompts as one batch; the last hidden states of all their tokens.
Rows Encode(const LoadedModel& model, ForwardPass* pass, const std::vector<Prompt>& prompts) {
  ForwardBatch& batch = pass->batch();
  batch.Clear();
  std::vector<std::vector<int32_t>> blocks;
  int32_t block = 0;
  for (const Prompt& prompt : prompts) {
    blocks.push_back(testing::Blocks(block, static_cast<int32_t>(prompt.ids.size())));
    block += static_cast<int32_t>(blocks.back().size());
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    batch.AddRow(prompts[i].ids, 0, blocks[i], false);
    batch.rows.back().second_segment_begin = prompts[i].second_segment_begin;
  }
  for (int32_t i = 0; i < batch.num_tokens(); ++i) batch.logit_tokens.push_back(i);
  pass->Begin();
  while (pass->Run(nullptr) != ForwardStatus::kDone) {
  }
  Rows rows;
  for (int32_t i = 0; i < batch.num_tokens(); ++i) {
    rows.emplace_back(pass->encoded(i), pass->encoded(i) + model.config().hidden_size);
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

  // The largest distance of a hidden state's element from the reference's. LayerNorm keeps
  // elements around 1, so an error is one of about so many units of the type.
  double WorstError(const std::string& dtype) {
    EXPECT_FALSE(prompts_.empty());
    const LoadedModel model(GetParam(), {.dtype = dtype});
    ForwardPass pass(model.context(), {.max_tokens = kMaxTokens, .max_logit_rows = 24});
    double worst = 0;
    for (const Json& golden : prompts_) {
      const Rows rows = Encode(model, &pass, {PromptOf(golden)});
      for (size_t d = 0; d < rows[0].size(); ++d) {
        double mean = 0;
        for (const std::vector<float>& row : rows) mean += row[d] / double(rows.size());
        worst = std::max({worst, std::abs(rows.front()[d] - golden["first"][d].get<double>()),
                          std::abs(rows.back()[d] - golden["last"][d].get<double>()),
                          std::abs(mean - golden["mean"][d].get<double>())});
      }
    }
    std::printf("%s: worst error %g\n", dtype.c_str(), worst);
    return worst;
  }

  std::vector<Json> prompts_;
};

TEST_P(EncoderGoldenTest, F32) { EXPECT_LT(WorstError("f32"), 5e-6); }
TEST_P(EncoderGoldenTest, Bf16) { EXPECT_LT(WorstError("bf16"), 0.04); }

TEST_P(EncoderGoldenTest, BatchesThreadsAndInstructionSetsChangeNoBit) {
  std::vector<Prompt> prompts;
  for (const Json& golden : prompts_) prompts.push_back(PromptOf(golden));
  for (const std::string dtype : {"f32", "bf16"}) {
    Rows alone;
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel model(GetParam(), {.dtype = dtype, .isa = isa});
      ForwardPass pass(model.context(), {.max_tokens = kMaxTokens, .max_logit_rows = 24});
      Rows here;
      for (const Prompt& prompt : prompts) {
        for (auto& row : Encode(model, &pass, {prompt})) here.push_back(std::move(row));
      }
      if (alone.empty()) alone = here;
      ASSERT_EQ(here, alone) << NameOf(isa);
      const LoadedModel threads(GetParam(), {.dtype = dtype, .isa = isa, .threads = 3});
      ForwardPass batched(threads.context(), {.max_tokens = kMaxTokens, .max_logit_rows = 64});
      ASSERT_EQ(Encode(threads, &batched, prompts), alone) << NameOf(isa);
    }
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

// The real model against sentence-transformers (tools/make_golden_minilm.py).
TEST(MiniLmTest, CosineToTheReference) {
  SKEIN_REQUIRE_MINILM();
  std::ifstream file(SKEIN_SOURCE_DIR "/tests/data/minilm.json");
  const Json golden = Json::parse(file);
  for (const auto& [dtype, least] : {std::pair("f32", 0.999999), std::pair("bf16", 0.9999)}) {
    const LoadedModel model(testing::MiniLmDir(), {.dtype = dtype});
    ForwardPass pass(model.context(), {.max_tokens = kMaxTokens});
    double worst = 1;
    for (const Json& row : golden["rows"]) {
      const Rows rows = Encode(model, &pass, {{row["ids"].get<std::vector<int32_t>>()}});
      std::vector<double> mean(rows[0].size());
      for (const std::vector<float>& hidden : rows) {
        for (size_t d = 0; d < mean.size(); ++d) mean[d] += hidden[d];
      }
      worst = std::min(worst, Cosine(mean, row["embedding"].get<std::vector<double>>()));
    }
    std::printf("%s: least cosine %.9f\n", dtype, worst);
    EXPECT_GE(worst, least) << dtype;
  }
}

std::string NameOfDir(const ::testing::TestParamInfo<std::string>& param) {
  std::string name = std::filesystem::path(param.param).filename();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Encoders, EncoderGoldenTest, ::testing::ValuesIn(EncoderDirs()),
                         NameOfDir);

}  // namespace
}  // namespace skein
