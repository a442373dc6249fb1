// Kev models, compared with golden files of the family's own code (tools/make_golden_kev.py), and
// their numeric contract: batches, chunks, a shared state, threads, stops and instruction sets
// change no bit.

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
using PointerLogits = std::vector<float>;  // of a question

constexpr const char* kKevModels[] = {"qwen3.5-adapter", "qwen3.5-whole", "qwen3-adapter"};

std::string KevDir(const std::string& name) { return SKEIN_SOURCE_DIR "/tests/data/kev/" + name; }

LoadedModel::Options KevOptions(const std::string& dtype, Isa isa = SelectIsa().value()) {
  return {.dtype = dtype, .isa = isa, .threads = 2, .num_blocks = 160, .rounds_states = false};
}

struct KevQuestion {
  std::vector<int32_t> ids, markers;
  int32_t summary = 0, shared = 0;
  std::vector<double> logits;
};

// The first `max_count` questions of a golden file that have at most `max_tokens` tokens.
std::vector<KevQuestion> KevQuestions(const std::string& name, size_t max_tokens,
                                      size_t max_count) {
  std::ifstream file(KevDir(name) + "/golden.json");
  const auto golden = nlohmann::json::parse(file);
  std::vector<KevQuestion> questions;
  for (const auto& row : golden["rows"]) {
    for (const auto& [id, read] : row["questions"].items()) {
      KevQuestion question = {read["ids"], read["markers"], read["summary"], read["shared"],
                              read["logits"].get<std::vector<double>>()};
      if (question.ids.size() <= max_tokens && questions.size() < max_count) {
        questions.push_back(std::move(question));
      }
    }
  }
  return questions;
}

// Adds tokens [begin, end) of a question. If the row contains the last marker, the question is
// asked.
void AddKevRow(ForwardBatch* batch, const KevQuestion& question, int32_t begin, int32_t end,
               std::span<const int32_t> blocks, const ForwardState& state) {
  const int32_t first = batch->num_tokens();
  batch->AddRow(std::span(question.ids).subspan(begin, end - begin), begin, blocks, false);
  batch->rows.back().state = state;
  if (end < std::ssize(question.ids)) return;
  batch->decided_rows.push_back({static_cast<int32_t>(batch->rows.size()) - 1,
                                 static_cast<int32_t>(batch->marker_tokens.size()),
                                 static_cast<int32_t>(question.markers.size()),
                                 first + question.summary - begin});
  for (const int32_t marker : question.markers) {
    batch->marker_tokens.push_back(first + marker - begin);
  }
}

// Runs the batch, whose questions are `questions` in this order. Returns their logits.
std::vector<PointerLogits> RunQuestions(ForwardPass* pass,
                                        const std::vector<KevQuestion>& questions,
                                        std::atomic<bool>* stop = nullptr) {
  std::vector<PointerLogits> logits(questions.size());
  pass->Begin();
  for (ForwardStatus status = pass->Run(stop); status != ForwardStatus::kDone;
       status = pass->Run(stop)) {
    if (status == ForwardStatus::kStopped) {
      stop->store(false);
      continue;
    }
    EXPECT_EQ(pass->chunk().kind, OutputKind::kQuestions);
    for (int32_t i = 0; i < pass->chunk().count; ++i) {
      const size_t index = pass->chunk().first + i;
      const size_t count = questions[index].markers.size();
      logits[index].assign(pass->output(i), pass->output(i) + count);
    }
  }
  return logits;
}

// Runs whole questions as one batch.
std::vector<PointerLogits> AnswerWhole(const LoadedModel& model,
                                       const std::vector<KevQuestion>& questions,
                                       int32_t chunk_tokens = 0,
                                       std::atomic<bool>* stop = nullptr) {
  ForwardLimits limits = {.max_tokens = 1, .max_logit_rows = 7, .chunk_tokens = chunk_tokens};
  for (const KevQuestion& question : questions) {
    const auto size = static_cast<int32_t>(question.ids.size());
    limits.max_tokens += size;
    limits.max_own_blocks += static_cast<int32_t>(testing::Blocks(0, size).size());
  }
  ForwardPass pass(model.context(), limits);
  for (const KevQuestion& question : questions) {
    AddKevRow(&pass.batch(), question, 0, static_cast<int32_t>(question.ids.size()), {}, {});
  }
  return RunQuestions(&pass, questions, stop);
}

// Runs the first `cut` tokens in a separate pass, as a server does with tokens that questions
// share, then the other tokens.
PointerLogits AnswerBehindPrefix(const LoadedModel& model, const KevQuestion& question,
                                 int32_t cut) {
  const auto size = static_cast<int32_t>(question.ids.size());
  const std::vector<int32_t> blocks = testing::Blocks(3, size);
  const bool linear = model.config().has_linear_layers();
  ForwardPass pass(model.context(), {.max_tokens = size, .max_logit_rows = 2});
  AddKevRow(&pass.batch(), question, 0, cut, blocks,
            linear ? ForwardState{.to = 1} : ForwardState{});
  RunQuestions(&pass, {});
  pass.batch().Clear();
  AddKevRow(&pass.batch(), question, cut, size, blocks,
            linear ? ForwardState{.from = 1} : ForwardState{});
  return RunQuestions(&pass, {question}).at(0);
}

class KevGoldenTest : public ::testing::TestWithParam<const char*> {};

// The largest difference of a logit from the reference's.
double WorstKevError(const std::string& name, const std::string& dtype) {
  const std::vector<KevQuestion> questions = KevQuestions(name, 2048, 1000);
  EXPECT_GE(questions.size(), 9u);
  const LoadedModel model(KevDir(name), KevOptions(dtype));
  double worst = 0, largest = 0;
  for (const KevQuestion& question : questions) {
    const PointerLogits logits = AnswerWhole(model, {question}).at(0);
    EXPECT_EQ(logits.size(), question.logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(std::isfinite(logits[i]));
      worst = std::max(worst, std::abs(logits[i] - question.logits[i]));
      largest = std::max(largest, std::abs(question.logits[i]));
    }
  }
  std::printf("%s in %s: worst error %g of logits up to %g\n", name.c_str(), dtype.c_str(), worst,
              largest);
  return worst;
}

TEST_P(KevGoldenTest, F32) { EXPECT_LT(WorstKevError(GetParam(), "f32"), 1e-4); }

TEST_P(KevGoldenTest, Bf16) { EXPECT_LT(WorstKevError(GetParam(), "bf16"), 0.5); }

TEST_P(KevGoldenTest, BatchesChunksThreadsAndInstructionSetsChangeNoBit) {
  const std::vector<KevQuestion> questions = KevQuestions(GetParam(), 200, 12);
  ASSERT_GE(questions.size(), 6u);
  for (const std::string dtype : {"f32", "bf16"}) {
    std::vector<PointerLogits> alone;
    const LoadedModel scalar(KevDir(GetParam()), KevOptions(dtype, Isa::kScalar));
    for (const KevQuestion& question : questions) {
      alone.push_back(AnswerWhole(scalar, {question}).at(0));
    }
    for (const Isa isa : testing::FmaIsas()) {
      const LoadedModel model(KevDir(GetParam()), KevOptions(dtype, isa));
      ASSERT_EQ(AnswerWhole(model, questions), alone) << NameOf(isa);
      ASSERT_EQ(AnswerWhole(model, questions, 32), alone) << NameOf(isa);
    }
  }
}

TEST_P(KevGoldenTest, ASharedStateChangesNoBitOnAnyUnit) {
  const std::vector<KevQuestion> questions = KevQuestions(GetParam(), 200, 8);
  ASSERT_GE(questions.size(), 6u);
  for (const Isa isa : testing::VectorIsas()) {
    const LoadedModel model(KevDir(GetParam()), KevOptions("bf16", isa));
    for (const KevQuestion& question : questions) {
      const PointerLogits whole = AnswerWhole(model, {question}).at(0);
      for (const int32_t cut : {question.shared, question.markers.front(), 1}) {
        ASSERT_EQ(AnswerBehindPrefix(model, question, cut), whole) << NameOf(isa) << " " << cut;
      }
    }
  }
}

TEST_P(KevGoldenTest, StopsChangeNoBit) {
  const std::vector<KevQuestion> questions = KevQuestions(GetParam(), 150, 4);
  ASSERT_FALSE(questions.empty());
  LoadedModel::Options options = KevOptions("bf16");
  options.threads = 1;
  LoadedModel model(KevDir(GetParam()), options);
  const std::vector<PointerLogits> expected = AnswerWhole(model, questions);
  const int64_t begin = model.kernels().num_calls();
  AnswerWhole(model, questions);
  const int64_t calls = model.kernels().num_calls() - begin;
  ASSERT_GT(calls, 100);
  for (int64_t after = 0; after < calls; after += 61) {
    model.kernels().StopAfter(after);
    ASSERT_EQ(AnswerWhole(model, questions, 0, &model.kernels().stop()), expected) << after;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KevGoldenTest, ::testing::ValuesIn(kKevModels),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace skein
