// Encoders, bidirectional decoders and decision models on the emulated device, beside the
// processor.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "testing/cuda_beside_cpu.h"

namespace skein::cuda {
namespace {

using testing::Both;
using testing::ExpectSame;
using testing::LoadedModel;
using testing::Random;
using testing::RunPlan;
using testing::Sequence;

constexpr char kData[] = SKEIN_SOURCE_DIR "/tests/data/";

// The models in a folder of tests/data that the device computes.
std::vector<std::string> ComputedIn(const std::string& folder) {
  std::vector<std::string> dirs;
  for (const auto& entry : std::filesystem::directory_iterator(kData + folder)) {
    if (!entry.is_directory()) continue;
    const LoadedModel model(entry.path().string());
    if (CheckDeviceComputes(model.weights()).ok()) dirs.push_back(entry.path().string());
  }
  std::ranges::sort(dirs);
  return dirs;
}

// Rows of several lengths: more tokens than the windows of the models, and several KV blocks.
struct Rows {
  Rows(const Both& both, Random& random, const std::vector<int32_t>& lengths) {
    for (const int32_t length : lengths) {
      sequences.emplace_back(random, both.model.vocab(), length, 10 * std::ssize(sequences));
    }
  }

  OneShotPlan Read(const std::vector<OutputSpec>& specs) {
    OneShotPlan plan;
    for (size_t i = 0; i < sequences.size(); ++i) {
      plan.rows.push_back(sequences[i].Row(0, sequences[i].size(), false));
      plan.rows.back().read = &specs[i % specs.size()];
      if (i == 1) plan.rows.back().second_segment_begin = sequences[i].size() / 2;
      if (i == 2) plan.rows.back().num_attended = sequences[i].size() - 7;
    }
    return plan;
  }

  std::vector<Sequence> sequences;
};

void ExpectSameReads(Both& both, const StepPlan& plan) {
  const StepResults on_device = RunPlan(both.cuda.executor(), plan);
  ExpectSame(on_device, RunPlan(*both.cpu, plan));
  for (const ReadResult& read : on_device.reads) EXPECT_FALSE(read.values.values.empty());
}

// A model whose operators run in chunks of so many tokens; 0: whole.
Both InChunks(const std::string& dir, int32_t chunk_tokens, Pooling pooling = Pooling::kLast) {
  return Both(dir, "auto", {}, {}, pooling, nullptr, {}, false, chunk_tokens);
}
constexpr int32_t kChunks[] = {0, 17};

constexpr Pooling kPoolings[] = {Pooling::kLast, Pooling::kCls, Pooling::kMean};

TEST(CudaEncoder, EmbeddingsAndStatesHaveTheProcessorsBits) {
  Random random;
  int32_t num_models = 0;
  for (const char* folder : {"encoders", "modernbert", "gemma", "sentence"}) {
    for (const std::string& dir : ComputedIn(folder)) {
      // Each model has one of the poolings.
      const Pooling pooling = kPoolings[num_models++ % std::size(kPoolings)];
      for (const int32_t chunk : kChunks) {
        SCOPED_TRACE(dir + ", chunks of " + std::to_string(chunk));
        Both both = InChunks(dir, chunk, pooling);
        Rows rows(both, random, {42, 1, 24, 9});
        const std::vector<OutputSpec> specs = {EmbedSpec{}, EmbedSpec{.all_tokens = true},
                                               EmbedSpec{}};
        ExpectSameReads(both, rows.Read(specs));
      }
    }
  }
  EXPECT_GE(num_models, 32);
}

TEST(CudaEncoder, ClassifiersHaveTheProcessorsBits) {
  Random random;
  int32_t num_models = 0;
  for (const char* folder : {"encoders", "modernbert"}) {
    for (const std::string& dir : ComputedIn(folder)) {
      SCOPED_TRACE(dir);
      Both both = InChunks(dir, kChunks[num_models % std::size(kChunks)]);
      if (both.model.config().head != Head::kClassifier) continue;
      ++num_models;
      Rows rows(both, random, {42, 1, 24, 9});
      ExpectSameReads(both, rows.Read({ClassifySpec{}}));
    }
  }
  EXPECT_GE(num_models, 11);
}

// Sparse vectors and vectors of tokens, which the processor reads from the device's states.
TEST(CudaEncoder, VectorsOfTokensHaveTheProcessorsBits) {
  Random random;
  int32_t num_models = 0;
  for (const char* folder : {"sparse", "colbert"}) {
    for (const std::string& dir : ComputedIn(folder)) {
      SCOPED_TRACE(dir);
      Both both(dir);
      ++num_models;
      EXPECT_FALSE(DeviceComputesOutputs(both.model.weights()));
      Rows rows(both, random, {42, 1, 24, 9});
      ExpectSameReads(both, rows.Read({EmbedSpec{}}));
    }
  }
  EXPECT_GE(num_models, 10);
}

TEST(CudaEncoder, QuantizedMatricesHaveTheProcessorsBits) {
  Random random;
  for (const char* name : {"encoders/bert", "encoders/modernbert", "encoders/gte"}) {
    for (const char* quantization : {"int8", "int4"}) {
      SCOPED_TRACE(name);
      Both both(std::string(kData) + name, quantization, {}, {}, Pooling::kMean);
      Rows rows(both, random, {42, 1, 24, 9});
      ExpectSameReads(both, rows.Read({EmbedSpec{}}));
    }
  }
}

// Slices of the terms of DeBERTa's scores: head by head.
TEST(CudaEncoder, SlicesOfTermsChangeNothing) {
  Random random;
  Both both(std::string(kData) + "encoders/deberta-v3");
  Rows rows(both, random, {42, 24});
  const std::vector<OutputSpec> specs = {EmbedSpec{}};
  const StepPlan plan = rows.Read(specs);
  const FakeDevice& fake = both.device.fake();
  RunPlan(both.cuda.executor(), plan);
  const int64_t num_launches = fake.num_launches();
  both.cuda.executor().set_slice_us(0);
  ExpectSameReads(both, plan);
  EXPECT_GT(fake.num_launches() - num_launches, num_launches);
}

// A question on a row: markers in ascending order, behind the first token. With options, each
// marker begins one, and two tokens follow the last.
DecideSpec QuestionOn(const Sequence& sequence, int32_t num_options, bool side_by_side,
                      Random& random) {
  DecideSpec decide{.markers = {}, .question_type = random.Integer(0, kNumQuestionTypes - 1)};
  const int32_t room = sequence.size() - 4;
  int32_t at = room - 3 * num_options - random.Integer(0, 3);
  for (int32_t i = 0; i < num_options; ++i) {
    decide.markers.push_back(at);
    at += random.Integer(1, 3);
  }
  decide.summary = sequence.size() - 1;
  if (!side_by_side) return decide;
  decide.option_bounds = decide.markers;
  decide.option_bounds.push_back(at);
  return decide;
}

std::vector<OutputSpec> QuestionsOn(const Rows& rows, Random& random, bool side_by_side) {
  std::vector<OutputSpec> questions;
  for (const Sequence& sequence : rows.sequences) {
    questions.emplace_back(
        QuestionOn(sequence, random.Integer(2, 5), side_by_side && questions.size() != 1, random));
  }
  return questions;
}

std::vector<std::string> DecisionModels() {
  std::vector<std::string> dirs = {std::string(kData) + "laya",
                                   std::string(kData) + "laya-parallel"};
  for (const char* folder : {"sysone", "clef", "kev"}) {
    const std::vector<std::string> more = ComputedIn(folder);
    dirs.insert(dirs.end(), more.begin(), more.end());
  }
  return dirs;
}

TEST(CudaEncoder, DecisionModelsHaveTheProcessorsBits) {
  Random random;
  const std::vector<std::string> dirs = DecisionModels();
  EXPECT_GE(dirs.size(), 8u);
  for (const std::string& dir : dirs) {
    for (const auto& [side_by_side, chunk] :
         {std::pair(false, 0), std::pair(true, 0), std::pair(true, 17)}) {
      SCOPED_TRACE(dir + (side_by_side ? ", options side by side" : "") + ", chunks of " +
                   std::to_string(chunk));
      Both both = InChunks(dir, chunk);
      Rows rows(both, random, {46, 31, 33, 45});
      const std::vector<OutputSpec> questions = QuestionsOn(rows, random, side_by_side);
      ExpectSameReads(both, rows.Read(questions));
    }
  }
}

// The signal comes again and again, on the device and while the processor computes the outputs.
TEST(CudaEncoder, StopsChangeNothing) {
  Random random;
  for (const char* name : {"laya", "sysone/modernbert-parallel"}) {
    SCOPED_TRACE(name);
    Both both(std::string(kData) + name);
    Rows rows(both, random, {40, 36});
    const std::vector<OutputSpec> questions = QuestionsOn(rows, random, true);
    const StepPlan plan = rows.Read(questions);
    const StepResults expected = RunPlan(both.cuda.executor(), plan);
    const int64_t all_launches = 2 * both.device.fake().num_launches();
    std::atomic<bool> preempt{false};
    both.device.set_before_launch([&] { preempt = true; });
    const auto task = both.cuda.executor().Begin(plan);
    int64_t num_stops = 0, on_host = 0, num_launches = 0;
    while (both.cuda.executor().Resume(*task, preempt) == TaskStatus::kPreempted) {
      // Behind the last launch a signal stops the processor's operators, here at the first.
      on_host += both.device.fake().num_launches() == num_launches;
      num_launches = both.device.fake().num_launches();
      preempt = on_host == 0 && num_launches == all_launches;
      ++num_stops;
    }
    EXPECT_GT(num_stops, 10);
    EXPECT_EQ(on_host, 1);
    ExpectSame(both.cuda.executor().Results(*task), expected);
  }
}

}  // namespace
}  // namespace skein::cuda
