// Models of the package sysone, compared with golden files that the package wrote
// (tools/make_golden_sysone.py), and their numeric contract: batches, chunks, threads, stops and
// instruction sets change no bit.

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
using OptionLogits = std::vector<float>;  // of a question

constexpr const char* kSysoneModels[] = {"modernbert-parallel", "qwen3-parallel", "gemma3-parallel",
                                         "llama-sequential", "eurobert-sequential"};

std::string SysoneDir(const std::string& name) {
  return SKEIN_SOURCE_DIR "/tests/data/sysone/" + name;
}

struct SysoneQuestion {
  std::vector<int32_t> ids, markers, option_bounds;
  int32_t summary = 0, type = 0;
  std::vector<double> logits, unrounded_logits;
  double slack = 0;  // the error by elements that the two sides round differently
};

// The first `max_count` questions of a golden file that have at most `max_tokens` tokens.
std::vector<SysoneQuestion> SysoneQuestions(const std::string& name, size_t max_tokens,
                                            size_t max_count) {
  std::ifstream file(SysoneDir(name) + "/golden.json");
  const auto golden = nlohmann::json::parse(file);
  const std::vector<std::string> types = {"choice", "score", "noul"};
  std::vector<SysoneQuestion> questions;
  for (const auto& row : golden["rows"]) {
    for (const auto& [id, read] : row["questions"].items()) {
      const auto type = row["body"]["questions"][id]["type"].get<std::string>();
      SysoneQuestion question = {read["ids"], read["markers"], read["option_bounds"],
                                 read["summary"]};
      question.type = static_cast<int32_t>(std::ranges::find(types, type) - types.begin());
      question.logits = read["logits"].get<std::vector<double>>();
      question.unrounded_logits = read["unrounded_logits"].get<std::vector<double>>();
      question.slack = read["slack"];
      if (question.ids.size() <= max_tokens && questions.size() < max_count) {
        questions.push_back(std::move(question));
      }
    }
  }
  return questions;
}

// Runs the questions as one batch. With `stop`, it stops wherever it can and continues.
std::vector<OptionLogits> Answer(const LoadedModel& model,
                                 const std::vector<SysoneQuestion>& questions,
                                 int32_t chunk_tokens = 0, std::atomic<bool>* stop = nullptr) {
  ForwardLimits limits = {.max_tokens = 1, .max_logit_rows = 7, .chunk_tokens = chunk_tokens};
  for (const SysoneQuestion& question : questions) {
    const auto size = static_cast<int32_t>(question.ids.size());
    limits.max_tokens += size;
    limits.max_own_blocks += static_cast<int32_t>(testing::Blocks(0, size).size());
  }
  ForwardPass pass(model.context(), limits);
  ForwardBatch& batch = pass.batch();
  for (size_t i = 0; i < questions.size(); ++i) {
    const SysoneQuestion& question = questions[i];
    const int32_t first = batch.num_tokens();
    batch.AddRow(question.ids, 0, {}, false);
    batch.rows.back().question_type = question.type;
    batch.rows.back().option_bounds = question.option_bounds;
    batch.decided_rows.push_back(
        {static_cast<int32_t>(i), static_cast<int32_t>(batch.marker_tokens.size()),
         static_cast<int32_t>(question.markers.size()), first + question.summary});
    for (const int32_t marker : question.markers) batch.marker_tokens.push_back(first + marker);
  }
  std::vector<OptionLogits> logits(questions.size());
  pass.Begin();
  for (ForwardStatus status = pass.Run(stop); status != ForwardStatus::kDone;
       status = pass.Run(stop)) {
    if (status == ForwardStatus::kStopped) {
      stop->store(false);
      continue;
    }
    EXPECT_EQ(pass.chunk().kind, OutputKind::kQuestions);
    for (int32_t i = 0; i < pass.chunk().count; ++i) {
      const size_t index = pass.chunk().first + i;
      const size_t count = questions[index].markers.size();
      logits[index].assign(pass.output(i), pass.output(i) + count);
    }
  }
  return logits;
}

class SysoneGoldenTest : public ::testing::TestWithParam<const char*> {};

// The largest difference between a logit and the package's. If the states that the head reads are
// rounded, only the part beyond the slack counts.
double WorstLogitError(const std::string& name, const std::string& dtype, bool rounds_states) {
  const std::vector<SysoneQuestion> questions = SysoneQuestions(name, 2048, 1000);
  EXPECT_GE(questions.size(), 9u);
  const LoadedModel model(SysoneDir(name), {.dtype = dtype, .rounds_states = rounds_states});
  double worst = 0, largest = 0;
  for (const SysoneQuestion& question : questions) {
    const OptionLogits logits = Answer(model, {question}).at(0);
    const auto& expected = rounds_states ? question.logits : question.unrounded_logits;
    EXPECT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(std::isfinite(logits[i]));
      const double error = std::abs(logits[i] - expected[i]);
      worst = std::max(worst, error - (rounds_states ? question.slack : 0));
      largest = std::max(largest, std::abs(expected[i]));
    }
  }
  std::printf("%s in %s: worst error %g of logits up to %g\n", name.c_str(), dtype.c_str(), worst,
              largest);
  return worst;
}

// Both sides compute in f32. The package itself differs by up to 2.5e-5 from its results in f64,
// for questions of up to 700 tokens (measured once). Logits reach 13, and a question has up to
// 2,048 tokens.
TEST_P(SysoneGoldenTest, F32) { EXPECT_LT(WorstLogitError(GetParam(), "f32", false), 1e-4); }

TEST_P(SysoneGoldenTest, F32WithRoundedStates) {
  EXPECT_LT(WorstLogitError(GetParam(), "f32", true), 5e-5);
}

TEST_P(SysoneGoldenTest, Bf16) { EXPECT_LT(WorstLogitError(GetParam(), "bf16", true), 0.5); }

TEST_P(SysoneGoldenTest, BatchesChunksThreadsAndInstructionSetsChangeNoBit) {
  const std::vector<SysoneQuestion> questions = SysoneQuestions(GetParam(), 200, 12);
  ASSERT_GE(questions.size(), 6u);
  for (const std::string dtype : {"f32", "bf16"}) {
    std::vector<OptionLogits> alone;
    const LoadedModel scalar(SysoneDir(GetParam()), {.dtype = dtype, .isa = Isa::kScalar});
    for (const SysoneQuestion& question : questions) {
      alone.push_back(Answer(scalar, {question}).at(0));
    }
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel threads(SysoneDir(GetParam()), {.dtype = dtype, .isa = isa, .threads = 3});
      ASSERT_EQ(Answer(threads, questions), alone) << NameOf(isa);
      ASSERT_EQ(Answer(threads, questions, 32), alone) << NameOf(isa);
    }
  }
}

TEST_P(SysoneGoldenTest, BatchesChangeNoBitOnAnyUnit) {
  const std::vector<SysoneQuestion> questions = SysoneQuestions(GetParam(), 200, 12);
  for (const Isa isa : testing::VectorIsas()) {
    const LoadedModel model(SysoneDir(GetParam()), {.dtype = "bf16", .isa = isa, .threads = 2});
    const std::vector<OptionLogits> together = Answer(model, questions, 32);
    for (size_t i = 0; i < questions.size(); ++i) {
      ASSERT_EQ(Answer(model, {questions[i]}).at(0), together[i]) << NameOf(isa);
    }
  }
}

TEST_P(SysoneGoldenTest, StopsChangeNoBit) {
  const std::vector<SysoneQuestion> questions = SysoneQuestions(GetParam(), 120, 4);
  ASSERT_FALSE(questions.empty());
  LoadedModel model(SysoneDir(GetParam()), {.dtype = "bf16"});
  const std::vector<OptionLogits> expected = Answer(model, questions);
  const int64_t begin = model.kernels().num_calls();
  Answer(model, questions);
  const int64_t calls = model.kernels().num_calls() - begin;
  ASSERT_GT(calls, 100);
  for (int64_t after = 0; after < calls; after += 61) {
    model.kernels().StopAfter(after);
    ASSERT_EQ(Answer(model, questions, 0, &model.kernels().stop()), expected) << after;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SysoneGoldenTest, ::testing::ValuesIn(kSysoneModels),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace skein
