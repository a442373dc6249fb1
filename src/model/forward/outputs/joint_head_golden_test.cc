// Clef models, compared with golden files of other servers' code (tools/make_golden_clef.py), and
// their numeric contract: batches, chunks, threads, stops and instruction sets change no bit.

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
using JointLogits = std::vector<float>;  // of all options of a request

constexpr const char* kClefModels[] = {"untied", "tied"};

std::string ClefDir(const std::string& name) { return SKEIN_SOURCE_DIR "/tests/data/clef/" + name; }

LoadedModel::Options ClefOptions(const std::string& dtype, Isa isa = SelectIsa().value()) {
  return {.dtype = dtype, .isa = isa, .threads = 2, .num_blocks = 80};
}

struct ClefRequest {
  std::vector<int32_t> ids, markers;
  std::vector<int32_t> types, text_begins, text_ends, option_counts, option_ends;
  std::vector<double> logits;

  RowSchema schema() const { return {types, text_begins, text_ends, option_counts, option_ends}; }
};

// The requests of a golden file that have at most `max_tokens` tokens.
std::vector<ClefRequest> ClefRequests(const std::string& name, size_t max_tokens) {
  constexpr int32_t kRowOfType[] = {2, 0, 1};  // of noul, choice, score
  std::ifstream file(ClefDir(name) + "/golden.json");
  const auto golden = nlohmann::ordered_json::parse(file);
  std::vector<ClefRequest> requests;
  for (const auto& row : golden["rows"]) {
    ClefRequest request = {.ids = row["ids"]};
    for (const auto& [id, question] : row["questions"].items()) {
      request.types.push_back(kRowOfType[question["type"].get<int32_t>()]);
      request.text_begins.push_back(question["text"][0]);
      request.text_ends.push_back(question["text"][1]);
      request.option_counts.push_back(static_cast<int32_t>(question["options"].size()));
      for (const auto& [option, read] : question["options"].items()) {
        request.markers.push_back(read[0]);
        request.option_ends.push_back(read[1]);
        request.logits.push_back(read[2]);
      }
    }
    if (request.ids.size() <= max_tokens) requests.push_back(std::move(request));
  }
  return requests;
}

// Runs requests as one batch.
std::vector<JointLogits> AnswerJointly(const LoadedModel& model,
                                       const std::vector<ClefRequest>& requests,
                                       int32_t chunk_tokens = 0,
                                       std::atomic<bool>* stop = nullptr) {
  ForwardLimits limits = {.max_tokens = 1, .max_logit_rows = 7, .chunk_tokens = chunk_tokens};
  for (const ClefRequest& request : requests) {
    const auto size = static_cast<int32_t>(request.ids.size());
    limits.max_tokens += size;
    limits.max_own_blocks += static_cast<int32_t>(testing::Blocks(0, size).size());
  }
  ForwardPass pass(model.context(), limits);
  ForwardBatch& batch = pass.batch();
  for (const ClefRequest& request : requests) {
    const int32_t first = batch.num_tokens();
    batch.AddRow(request.ids, 0, {}, false);
    batch.decided_rows.push_back({static_cast<int32_t>(batch.rows.size()) - 1,
                                  static_cast<int32_t>(batch.marker_tokens.size()),
                                  static_cast<int32_t>(request.markers.size()), first,
                                  request.schema()});
    for (const int32_t marker : request.markers) batch.marker_tokens.push_back(first + marker);
  }
  std::vector<JointLogits> logits(requests.size());
  pass.Begin();
  for (ForwardStatus status = pass.Run(stop); status != ForwardStatus::kDone;
       status = pass.Run(stop)) {
    if (status == ForwardStatus::kStopped) {
      stop->store(false);
      continue;
    }
    EXPECT_EQ(pass.chunk().kind, OutputKind::kQuestions);
    EXPECT_EQ(pass.chunk().count, 1);
    const auto index = static_cast<size_t>(pass.chunk().first);
    logits[index].assign(pass.output(0), pass.output(0) + requests[index].markers.size());
  }
  return logits;
}

class ClefGoldenTest : public ::testing::TestWithParam<const char*> {};

// The largest difference of a logit from the reference's.
double WorstClefError(const std::string& name, const std::string& dtype) {
  const std::vector<ClefRequest> requests = ClefRequests(name, 2048);
  EXPECT_GE(requests.size(), 4u);
  const LoadedModel model(ClefDir(name), ClefOptions(dtype));
  double worst = 0, largest = 0;
  for (const ClefRequest& request : requests) {
    const JointLogits logits = AnswerJointly(model, {request}).at(0);
    EXPECT_EQ(logits.size(), request.logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(std::isfinite(logits[i]));
      worst = std::max(worst, std::abs(logits[i] - request.logits[i]));
      largest = std::max(largest, std::abs(request.logits[i]));
    }
  }
  std::printf("%s in %s: worst error %g of logits up to %g\n", name.c_str(), dtype.c_str(), worst,
              largest);
  return worst;
}

// A probability moves by at most half of what its logits move.
TEST_P(ClefGoldenTest, F32) { EXPECT_LT(WorstClefError(GetParam(), "f32"), 2e-5); }

TEST_P(ClefGoldenTest, Bf16) { EXPECT_LT(WorstClefError(GetParam(), "bf16"), 0.2); }

TEST_P(ClefGoldenTest, BatchesChunksThreadsAndInstructionSetsChangeNoBit) {
  const std::vector<ClefRequest> requests = ClefRequests(GetParam(), 700);
  ASSERT_GE(requests.size(), 2u);
  for (const std::string dtype : {"f32", "bf16"}) {
    std::vector<JointLogits> alone;
    const LoadedModel scalar(ClefDir(GetParam()), ClefOptions(dtype, Isa::kScalar));
    for (const ClefRequest& request : requests) {
      alone.push_back(AnswerJointly(scalar, {request}).at(0));
    }
    for (const Isa isa : testing::FmaIsas()) {
      LoadedModel::Options options = ClefOptions(dtype, isa);
      options.threads = 3;
      const LoadedModel model(ClefDir(GetParam()), options);
      ASSERT_EQ(AnswerJointly(model, requests), alone) << NameOf(isa);
      ASSERT_EQ(AnswerJointly(model, requests, 32), alone) << NameOf(isa);
    }
  }
}

TEST_P(ClefGoldenTest, ABatchChangesNoBitOnAnyUnit) {
  const std::vector<ClefRequest> requests = ClefRequests(GetParam(), 700);
  for (const Isa isa : testing::VectorIsas()) {
    const LoadedModel model(ClefDir(GetParam()), ClefOptions("bf16", isa));
    const std::vector<JointLogits> together = AnswerJointly(model, requests, 64);
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(AnswerJointly(model, {requests[i]}).at(0), together[i]) << NameOf(isa);
    }
  }
}

TEST_P(ClefGoldenTest, StopsChangeNoBit) {
  std::vector<ClefRequest> requests = ClefRequests(GetParam(), 700);
  requests.resize(2);
  LoadedModel::Options options = ClefOptions("bf16");
  options.threads = 1;
  LoadedModel model(ClefDir(GetParam()), options);
  const std::vector<JointLogits> expected = AnswerJointly(model, requests);
  const int64_t begin = model.kernels().num_calls();
  AnswerJointly(model, requests);
  const int64_t calls = model.kernels().num_calls() - begin;
  ASSERT_GT(calls, 100);
  for (int64_t after = 0; after < calls; after += calls / 40) {
    model.kernels().StopAfter(after);
    ASSERT_EQ(AnswerJointly(model, requests, 0, &model.kernels().stop()), expected) << after;
  }
}

// Without a schema, the row asks one question whose parts are single tokens.
TEST_P(ClefGoldenTest, ARowWithoutASchemaIsOneQuestionOfSingleTokens) {
  ClefRequest plain = ClefRequests(GetParam(), 700).front();
  plain.markers = {3, 5, 8};
  ClefRequest told = plain;
  told.types = {0};
  told.text_begins = {0};
  told.text_ends = {1};
  told.option_counts = {3};
  told.option_ends = {4, 6, 9};
  for (std::vector<int32_t>* list : {&plain.types, &plain.text_begins, &plain.text_ends,
                                     &plain.option_counts, &plain.option_ends}) {
    list->clear();
  }
  const LoadedModel model(ClefDir(GetParam()), ClefOptions("f32"));
  EXPECT_EQ(AnswerJointly(model, {plain}), AnswerJointly(model, {told}));
}

INSTANTIATE_TEST_SUITE_P(Models, ClefGoldenTest, ::testing::ValuesIn(kClefModels));

}  // namespace
}  // namespace skein
