// SPLADE models, compared with golden files of the reference library (tools/make_golden_sparse.py),
// and their numeric contract: batches, chunks, threads, stops and instruction sets change no bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::LoadedModel;
using Json = nlohmann::json;
using SparseRows = std::vector<std::vector<float>>;

constexpr int32_t kSparseTokens = 160;  // of all prompts of a golden file

// Runs the prompts as one batch, with chunks of `chunk` tokens. Returns their vectors.
SparseRows EncodeSparse(const LoadedModel& model, size_t chunk,
                        const std::vector<std::vector<int32_t>>& prompts,
                        std::atomic<bool>* stop = nullptr) {
  ForwardPass pass(model.context(), {.max_tokens = kSparseTokens,
                                     .max_logit_rows = static_cast<int32_t>(chunk),
                                     .chunk_tokens = 48});
  ForwardBatch& batch = pass.batch();
  std::vector<std::vector<int32_t>> blocks;
  int32_t block = 0;
  for (const std::vector<int32_t>& ids : prompts) {
    blocks.push_back(testing::Blocks(block, static_cast<int32_t>(ids.size())));
    block += static_cast<int32_t>(blocks.back().size());
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const int32_t first = batch.num_tokens();
    batch.AddRow(prompts[i], 0, blocks[i], false);
    for (int32_t token = first; token < batch.num_tokens(); ++token) {
      batch.sparse_tokens.push_back({token, token + 1 == batch.num_tokens()});
    }
  }
  SparseRows rows;
  pass.Begin();
  for (;;) {
    const ForwardStatus status = pass.Run(stop);
    if (status == ForwardStatus::kDone) return rows;
    if (status == ForwardStatus::kStopped) {
      stop->store(false);
      continue;
    }
    for (int32_t i = 0; i < pass.chunk().count; ++i) {
      if (!batch.sparse_tokens[pass.chunk().first + i].ends_row) continue;
      rows.emplace_back(pass.output(i), pass.output(i) + model.vocab());
    }
  }
}

std::vector<std::string> SparseDirs() {
  std::vector<std::string> dirs;
  for (const auto& entry :
       std::filesystem::directory_iterator(SKEIN_SOURCE_DIR "/tests/data/sparse")) {
    if (entry.is_directory()) dirs.push_back(entry.path().string());
  }
  std::sort(dirs.begin(), dirs.end());
  return dirs;
}

class SparseGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  SparseGoldenTest() {
    std::ifstream file(GetParam() + "/golden.json");
    const Json golden = Json::parse(file);
    EXPECT_FALSE(golden["prompts"].empty());
    for (const Json& prompt : golden["prompts"]) {
      prompts_.push_back(prompt["ids"].get<std::vector<int32_t>>());
      vectors_.push_back(prompt["vector"].get<std::vector<double>>());
    }
  }

  // The largest difference between an element and the reference's. A sum over tokens is divided by
  // their number. Logits have a spread of 6; near 0 an element errs as much as its logit.
  double WorstError(const std::string& dtype) {
    const LoadedModel model(GetParam(), {.dtype = dtype});
    double worst = 0;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      const std::vector<float> found = EncodeSparse(model, 64, {prompts_[i]}).at(0);
      EXPECT_EQ(found.size(), vectors_[i].size());
      const bool sums = model.config().encoder.sparse.sums;
      const double terms = sums ? static_cast<double>(prompts_[i].size()) : 1;
      for (size_t d = 0; d < found.size(); ++d) {
        worst = std::max(worst, std::abs(found[d] - vectors_[i][d]) / terms);
      }
    }
    std::printf("%s: worst error %g\n", dtype.c_str(), worst);
    return worst;
  }

  std::vector<std::vector<int32_t>> prompts_;
  std::vector<std::vector<double>> vectors_;
};

TEST_P(SparseGoldenTest, F32) { EXPECT_LT(WorstError("f32"), 1e-5); }
TEST_P(SparseGoldenTest, Bf16) { EXPECT_LT(WorstError("bf16"), 0.15); }

TEST_P(SparseGoldenTest, BatchesChunksThreadsAndInstructionSetsChangeNoBit) {
  for (const std::string dtype : {"f32", "bf16"}) {
    const LoadedModel scalar(GetParam(), {.dtype = dtype, .isa = Isa::kScalar});
    SparseRows alone;
    for (const std::vector<int32_t>& ids : prompts_) {
      alone.push_back(EncodeSparse(scalar, 64, {ids}).at(0));
    }
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel threads(GetParam(), {.dtype = dtype, .isa = isa, .threads = 3});
      for (const size_t chunk : {1, 3, 16, 64}) {
        ASSERT_EQ(EncodeSparse(threads, chunk, prompts_), alone) << NameOf(isa) << " " << chunk;
      }
      const SparseRows reversed(alone.rbegin(), alone.rend());
      ASSERT_EQ(EncodeSparse(threads, 7, {prompts_.rbegin(), prompts_.rend()}), reversed);
    }
  }
}

TEST_P(SparseGoldenTest, StopsChangeNoBit) {
  LoadedModel model(GetParam(), {.dtype = "f32"});
  const SparseRows whole = EncodeSparse(model, 5, prompts_);
  const int64_t num_calls = model.kernels().num_calls();
  EncodeSparse(model, 5, prompts_);
  const int64_t calls = model.kernels().num_calls() - num_calls;
  for (int64_t after = 0; after < calls; after += 1 + calls / 40) {
    model.kernels().StopAfter(after);
    ASSERT_EQ(EncodeSparse(model, 5, prompts_, &model.kernels().stop()), whole) << after;
  }
}

std::string NameOfSparse(const ::testing::TestParamInfo<std::string>& param) {
  std::string name = std::filesystem::path(param.param).filename();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sparse, SparseGoldenTest, ::testing::ValuesIn(SparseDirs()), NameOfSparse);

// A NaN in one element must not be lost among larger ones: such an answer is an error.
TEST(SparseOperatorTest, NansStay) {
  const std::string dir = SparseDirs().front();
  const LoadedModel model(dir, {.dtype = "f32"});
  auto& bias = const_cast<ModelWeights&>(model.weights()).output_bias;
  bias[17] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> vector = EncodeSparse(model, 2, {{5, 6, 7, 8}}).at(0);
  for (size_t i = 0; i < vector.size(); ++i) EXPECT_EQ(std::isnan(vector[i]), i == 17) << i;
}

}  // namespace
}  // namespace skein
