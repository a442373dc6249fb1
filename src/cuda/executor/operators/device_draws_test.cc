#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cuda/executor/cuda_executor.h"
#include "model/config/config.h"
#include "model/weights/random_model.h"
#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

namespace fs = std::filesystem;
using testing::Both;
using testing::FakeDeviceOptions;
using testing::ModelDir;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;

constexpr int32_t kVocab = 4100;  // more than kMaxCandidates
constexpr TokenId kNaNToken = 9;  // its embedding has a NaN

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A decoder of two layers with random weights and a wide vocabulary, in f32.
class DeviceDraws : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = (fs::temp_directory_path() / ("skein_draws_" + std::to_string(getpid()))).string();
    fs::create_directories(dir_);
    std::string text = ReadText(ModelDir("llama-default") + "/config.json");
    const std::string narrow = "\"vocab_size\": 128";
    text.replace(text.find(narrow), narrow.size(), "\"vocab_size\": " + std::to_string(kVocab));
    std::ofstream(dir_ + "/config.json") << text;
    ThreadTeam team(1);
    ASSERT_TRUE(
        WriteRandomWeights(ParseModelConfig(text).value(), {DType::kF32, 5}, dir_, &team, {}).ok());
    const std::string path = dir_ + "/model.safetensors";
    // The tensor's place in the file: behind the header, which begins with its own length.
    const std::string bytes = ReadText(path);
    uint64_t header = 0, begin = 0;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::string offsets = "\"data_offsets\":[";
    const size_t name = bytes.find("\"model.embed_tokens.weight\"");
    ASSERT_NE(name, std::string::npos);
    const size_t number = bytes.find(offsets, name);
    ASSERT_NE(number, std::string::npos);
    begin = std::strtoull(bytes.c_str() + number + offsets.size(), nullptr, 10);
    const int64_t hidden = ParseModelConfig(text).value().hidden_size;
    const auto at = static_cast<int64_t>(sizeof(header) + header + begin) +
                    kNaNToken * hidden * static_cast<int64_t>(sizeof(float));
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at).write("\0\0\xc0\x7f", 4);
  }
  static void TearDownTestSuite() { fs::remove_all(dir_); }

  // The model, on two ranks or on one.
  static std::unique_ptr<Both> OnDevices(int num_ranks) {
    const std::vector<FakeDeviceOptions> peers(num_ranks - 1);
    return std::make_unique<Both>(dir_, "auto", FakeDeviceOptions{}, StepStates{.num_steps = 2},
                                  Pooling::kLast, nullptr, peers);
  }
  // A sequence without log-probabilities.
  static Sequence NewSequence(Random& random, int32_t num_tokens, int32_t first_block) {
    Sequence sequence(random, kVocab, num_tokens, first_block);
    for (TokenId& token : sequence.tokens) token += token == kNaNToken ? 1 : 0;
    sequence.generate.num_logprobs.reset();
    return sequence;
  }
  static PlanRow Last(Sequence& sequence) {
    return sequence.Row(sequence.size() - 1, sequence.size(), true);
  }
  static void Prefill(Both& both, std::vector<Sequence>& sequences) {
    std::vector<PlanRow> rows;
    for (Sequence& sequence : sequences) {
      rows.push_back(sequence.Row(0, sequence.size() - 1, false));
    }
    const StepPlan plan = MixedPlan{{}, rows, {}};
    RunPlan(both.cuda.executor(), plan);
    RunPlan(*both.cpu, plan);
  }

  static std::string dir_;
};
std::string DeviceDraws::dir_;

void ExpectSameDraws(const StepResults& a, const StepResults& b, const std::string& where) {
  ASSERT_EQ(a.draws.size(), b.draws.size());
  for (size_t i = 0; i < a.draws.size(); ++i) {
    EXPECT_EQ(a.draws[i].finite, b.draws[i].finite) << where << ", draw " << i;
    if (b.draws[i].finite) {
      EXPECT_EQ(a.draws[i].token.token, b.draws[i].token.token) << where << ", draw " << i;
    }
  }
}

std::string TextOf(const SamplingParams& p) {
  return "temperature " + std::to_string(p.temperature) + ", top_k " + std::to_string(p.top_k) +
         ", top_p " + std::to_string(p.top_p) + ", min_p " + std::to_string(p.min_p);
}

// All combinations of the parameters.
std::vector<SamplingParams> Combinations() {
  std::vector<SamplingParams> all;
  for (const float temperature : {0.15f, 1.0f}) {
    for (const int32_t top_k : {0, 1, 16, 3000}) {
      for (const float top_p : {1.0f, 0.8f}) {
        for (const float min_p : {0.0f, 0.2f}) {
          SamplingParams& params = all.emplace_back();
          params.temperature = temperature;
          params.top_k = top_k;
          params.top_p = top_p;
          params.min_p = min_p;
        }
      }
    }
  }
  return all;
}

// As steps of decodes, which are graphs, and as prompts. Draws of a row with all parameters equal
// and of others are in one step.
TEST_F(DeviceDraws, EveryCombinationHasTheProcessorsTokens) {
  Random random;
  for (const int num_ranks : {1, 2}) {
    const std::unique_ptr<Both> both = OnDevices(num_ranks);
    std::vector<Sequence> sequences;
    for (int32_t i = 0; i < 3; ++i) {
      sequences.push_back(NewSequence(random, 4 + 5 * i, 5 * i));
    }
    Prefill(*both, sequences);
    const std::vector<SamplingParams> all = Combinations();
    const size_t step = num_ranks == 1 ? 2 : 5;
    for (size_t i = 0; i < all.size(); i += step) {
      std::vector<PlanRow> rows;
      std::string where = std::to_string(num_ranks) + " ranks: ";
      for (size_t k = 0; k < sequences.size(); ++k) {
        SamplingParams params = all[(i + 7 * k) % all.size()];
        params.seed = static_cast<uint64_t>(random.Integer(0, 1 << 30));
        sequences[k].generate.sampling = params;
        where += TextOf(params) + "; ";
        rows.push_back(i % 4 == 0 ? Last(sequences[k]) : sequences[k].Whole());
      }
      const StepPlan plan = i % 4 == 0 ? StepPlan(DecodePlan{{}, rows}) : OneShotPlan{rows};
      ExpectSameDraws(RunPlan(both->cuda.executor(), plan), RunPlan(*both->cpu, plan), where);
    }
    // The random draws are in one graph of four tokens.
    EXPECT_EQ(both->device.fake().num_graphs(), 1);
  }
}

// A row whose bound leaves too many candidates comes to the host behind the others, alone.
TEST_F(DeviceDraws, DrawsBringNoLogitsToTheHost) {
  Random random;
  const std::unique_ptr<Both> both = OnDevices(1);
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 3; ++i) sequences.push_back(NewSequence(random, 6, 5 * i));
  Prefill(*both, sequences);
  const size_t row_bytes = kVocab * sizeof(float);
  sequences[0].generate.sampling.temperature = 0;
  sequences[1].generate.sampling.temperature = 0.8f;
  SamplingParams& last = sequences[2].generate.sampling;
  const auto expect_bytes = [&](size_t num_rows, const std::string& where) {
    std::vector<PlanRow> rows;
    for (Sequence& sequence : sequences) rows.push_back(Last(sequence));
    for (const StepPlan& plan : {StepPlan(DecodePlan{{}, rows}), StepPlan(MixedPlan{{}, {}, rows}),
                                 StepPlan(OneShotPlan{rows})}) {
      const size_t before = both->device.bytes_to_host();
      const StepResults results = RunPlan(both->cuda.executor(), plan);
      EXPECT_EQ(both->device.bytes_to_host() - before,
                3 * sizeof(RowLargest) + num_rows * row_bytes)
          << where;
      ExpectSameDraws(results, RunPlan(*both->cpu, plan), where);
    }
  };
  last.temperature = 0.9f;
  expect_bytes(0, "of all tokens");
  last.top_k = 5;
  last.top_p = 0.7f;
  expect_bytes(0, "of the largest");
  last.top_k = 3000;
  expect_bytes(1, "of too many");
  last.top_k = 0;
  last.top_p = 1.0f;
  last.repetition_penalty = 1.5f;
  expect_bytes(1, "with a penalty");
  // Steps with greedy draws alone have a graph without the kernels of random ones.
  EXPECT_EQ(both->device.fake().num_graphs(), 1);
  sequences[1].generate.sampling.temperature = last.temperature = 0;
  expect_bytes(1, "greedy");
  EXPECT_EQ(both->device.fake().num_graphs(), 2);
}

TEST_F(DeviceDraws, RowsThatAreNotFiniteAreReported) {
  Random random;
  const std::unique_ptr<Both> both = OnDevices(1);
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 3; ++i) sequences.push_back(NewSequence(random, 6, 5 * i));
  Prefill(*both, sequences);
  sequences[1].tokens.back() = kNaNToken;
  for (const int32_t top_k : {0, 4, 3000}) {
    std::vector<PlanRow> rows;
    for (Sequence& sequence : sequences) {
      sequence.generate.sampling.top_k = top_k;
      rows.push_back(Last(sequence));
    }
    const StepPlan plan = DecodePlan{{}, rows};
    const StepResults results = RunPlan(both->cuda.executor(), plan);
    ExpectSameDraws(results, RunPlan(*both->cpu, plan), "top_k " + std::to_string(top_k));
    ASSERT_EQ(results.draws.size(), 3u);
    EXPECT_TRUE(results.draws[0].finite && results.draws[2].finite);
    EXPECT_FALSE(results.draws[1].finite);
  }
}

// Several samples of one prompt are drawn from one row of logits.
TEST_F(DeviceDraws, SamplesOfOneRowAreDrawnOnTheHost) {
  Random random;
  const std::unique_ptr<Both> both = OnDevices(1);
  Sequence sequence = NewSequence(random, 9, 0);
  PlanRow row = sequence.Whole();
  std::vector<DrawSpec> draws;
  for (int32_t sample = 0; sample < 3; ++sample) {
    draws.push_back({&sequence.generate, sample, sequence.tokens, sequence.size()});
  }
  row.draws = draws;
  const StepPlan plan = OneShotPlan{{row}};
  ExpectSameDraws(RunPlan(both->cuda.executor(), plan), RunPlan(*both->cpu, plan), "samples");
}

// The signal comes at each launch in turn, and at each copy of rows that were left to the host.
TEST_F(DeviceDraws, StopsChangeNoToken) {
  Random random;
  const std::unique_ptr<Both> both = OnDevices(1);
  CudaExecutor& executor = both->cuda.executor();
  executor.set_ahead_us(0);
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < 3; ++i) sequences.push_back(NewSequence(random, 5 + i, 5 * i));
  sequences[1].generate.sampling.top_k = 3000;
  sequences[2].generate.sampling.top_k = 10;
  Sequence other = NewSequence(random, 3, 20);
  std::vector<PlanRow> rows;
  for (Sequence& sequence : sequences) rows.push_back(sequence.Whole());
  const StepPlan plan = OneShotPlan{rows}, other_plan = OneShotPlan{{other.Whole()}};
  const int64_t before = both->device.fake().num_launches();
  const StepResults expected = RunPlan(executor, plan);
  ExpectSameDraws(expected, RunPlan(*both->cpu, plan), "alone");
  const int64_t num_launches = both->device.fake().num_launches() - before;
  const int64_t num_stops = testing::StopAtEachLaunch(*both, plan, expected, other_plan,
                                                      num_launches, [](int64_t) { return [] {}; });
  EXPECT_GE(num_stops, num_launches - 1);
}

}  // namespace
}  // namespace skein::cuda
