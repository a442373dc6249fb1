// A decision model, compared with golden files of the package that writes these models
// (tools/make_golden_laya.py), and its numeric contract: batches, chunks, threads, stops and
// instruction sets change no bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/decision_head.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::LoadedModel;
using Json = nlohmann::json;
using Values = std::vector<float>;  // logits of the options, then of the actions

constexpr char kLaya[] = SKEIN_SOURCE_DIR "/tests/data/laya";
constexpr char kLayaParallel[] = SKEIN_SOURCE_DIR "/tests/data/laya-parallel";

struct Question {
  std::vector<int32_t> ids, markers;
  int32_t type = 0;
  std::vector<double> logits, actions;
  std::vector<int32_t> option_bounds;  // for options that are read side by side
};

// The first `max_count` questions of the golden file that have at most `max_tokens` tokens.
std::vector<Question> GoldenQuestions(size_t max_tokens, size_t max_count,
                                      const std::string& dir = kLaya) {
  std::ifstream file(dir + "/golden.json");
  const Json golden = Json::parse(file);
  const std::vector<std::string> types = {"choice", "score", "noul"};
  std::vector<Question> questions;
  for (const Json& row : golden["rows"]) {
    for (const auto& [name, read] : row["questions"].items()) {
      Question question = {read["ids"], read["markers"], 0, read["logits"], read["actions"], {}};
      if (read.contains("option_bounds"))
        question.option_bounds = read["option_bounds"].get<std::vector<int32_t>>();
      const auto type = row["body"]["questions"][name]["type"].get<std::string>();
      question.type = static_cast<int32_t>(std::ranges::find(types, type) - types.begin());
      if (question.ids.size() <= max_tokens && questions.size() < max_count) {
        questions.push_back(std::move(question));
      }
    }
  }
  return questions;
}

// Runs the questions as one batch. With `stop`, it stops wherever it can and continues.
std::vector<Values> Decide(const LoadedModel& model, const std::vector<Question>& questions,
                           int32_t chunk_tokens = 0, std::atomic<bool>* stop = nullptr) {
  ForwardLimits limits = {.max_tokens = 1, .max_logit_rows = 7, .chunk_tokens = chunk_tokens};
  for (const Question& question : questions) {
    const auto size = static_cast<int32_t>(question.ids.size());
    limits.max_tokens += size;
    limits.max_own_blocks += static_cast<int32_t>(testing::Blocks(0, size).size());
  }
  ForwardPass pass(model.context(), limits);
  ForwardBatch& batch = pass.batch();
  std::vector<size_t> row_of_marker;
  for (size_t i = 0; i < questions.size(); ++i) {
    const int32_t first = batch.num_tokens();
    batch.AddRow(questions[i].ids, 0, {}, false);
    batch.rows.back().question_type = questions[i].type;
    batch.rows.back().option_bounds = questions[i].option_bounds;
    for (const int32_t marker : questions[i].markers) {
      batch.marker_tokens.push_back(first + marker);
      row_of_marker.push_back(i);
    }
    batch.action_rows.push_back(static_cast<int32_t>(i));
  }
  std::vector<Values> values(questions.size());
  pass.Begin();
  for (ForwardStatus status = pass.Run(stop); status != ForwardStatus::kDone;
       status = pass.Run(stop)) {
    if (status == ForwardStatus::kStopped) {
      stop->store(false);
      continue;
    }
    for (int32_t i = 0; i < pass.chunk().count; ++i) {
      const size_t index = pass.chunk().first + i;
      if (pass.chunk().kind == OutputKind::kMarkers) {
        values[row_of_marker[index]].push_back(*pass.output(i));
        continue;
      }
      Values& own = values[index];
      AppendActionLogits(model.weights().decision, *model.context().kernels, Values(own),
                         pass.output(i), &own);
    }
  }
  return values;
}

// The largest differences of the options' and the actions' logits from the reference's.
struct Errors {
  double options = 0;
  double actions = 0;
};

Errors WorstErrors(const std::string& dtype, const std::string& dir = kLaya) {
  const std::vector<Question> questions = GoldenQuestions(4096, 1000, dir);
  EXPECT_GT(questions.size(), dir == kLaya ? 80u : 8u);
  const LoadedModel model(dir, {.dtype = dtype});
  Errors worst;
  for (const Question& question : questions) {
    const Values values = Decide(model, {question}).at(0);
    const size_t count = question.logits.size();
    EXPECT_EQ(values.size(), count + question.actions.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = i < count ? question.logits[i] : question.actions[i - count];
      double& error = i < count ? worst.options : worst.actions;
      error = std::max(error, std::abs(values[i] - expected));
    }
  }
  std::printf("%s: worst error of options %g, of actions %g\n", dtype.c_str(), worst.options,
              worst.actions);
  return worst;
}

// The reference also computes in f32. It differs by up to 2.5e-5 from its own results in f64
// (measured once). Logits reach 12.
TEST(DecisionGoldenTest, F32) {
  const Errors errors = WorstErrors("f32");
  EXPECT_LT(errors.options, 5e-5);
  EXPECT_LT(errors.actions, 5e-5);
}

// The same weights, with options read side by side.
TEST(DecisionGoldenTest, ParallelOptions) {
  const Errors errors = WorstErrors("f32", kLayaParallel);
  EXPECT_LT(errors.options, 5e-5);
  EXPECT_LT(errors.actions, 5e-5);
  const std::vector<Question> questions = GoldenQuestions(120, 8, kLayaParallel);
  const LoadedModel model(kLayaParallel, {.dtype = "bf16", .threads = 2});
  const std::vector<Values> together = Decide(model, questions, 32);
  for (size_t i = 0; i < questions.size(); ++i) {
    ASSERT_EQ(Decide(model, {questions[i]}).at(0), together[i]);
  }
}

TEST(DecisionGoldenTest, Bf16) {
  const Errors errors = WorstErrors("bf16");
  EXPECT_LT(errors.options, 0.3);
  EXPECT_LT(errors.actions, 0.4);
}

TEST(DecisionGoldenTest, BatchesChunksThreadsAndInstructionSetsChangeNoBit) {
  const std::vector<Question> questions = GoldenQuestions(90, 16);
  ASSERT_EQ(questions.size(), 16u);
  for (const std::string dtype : {"f32", "bf16"}) {
    std::vector<Values> alone;
    const LoadedModel scalar(kLaya, {.dtype = dtype, .isa = Isa::kScalar});
    for (const Question& question : questions) alone.push_back(Decide(scalar, {question}).at(0));
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel threads(kLaya, {.dtype = dtype, .isa = isa, .threads = 3});
      ASSERT_EQ(Decide(threads, questions), alone) << NameOf(isa);
      ASSERT_EQ(Decide(threads, questions, 32), alone) << NameOf(isa);
    }
  }
}

TEST(DecisionGoldenTest, StopsChangeNoBit) {
  const std::vector<Question> questions = GoldenQuestions(60, 5);
  LoadedModel model(kLaya, {.dtype = "bf16"});
  const std::vector<Values> expected = Decide(model, questions);
  const int64_t begin = model.kernels().num_calls();
  Decide(model, questions);
  const int64_t calls = model.kernels().num_calls() - begin;
  ASSERT_GT(calls, 100);
  for (int64_t after = 0; after < calls; after += 37) {
    model.kernels().StopAfter(after);
    ASSERT_EQ(Decide(model, questions, 0, &model.kernels().stop()), expected) << after;
  }
}

}  // namespace
}  // namespace skein
