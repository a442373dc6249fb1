#include "server/decisions/option_paths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace skein {
namespace {

// A model of at most three steps. Its next-token probabilities are looked up by the tokens before.
struct TableModel {
  // Keyed by the tokens behind the prompt.
  std::map<std::vector<TokenId>, std::map<TokenId, double>> next;

  double P(const std::vector<TokenId>& before, TokenId token) const {
    return next.at(before).at(token);
  }
  // The engine's outputs for rows: logits whose log-sum-exp is 5.
  OptionScores Read(const QuestionReads& reads, size_t prompt_size) const {
    std::vector<ReadValues> values;
    std::vector<std::vector<float>> prompts;
    for (const DecisionRow& row : reads.rows) {
      const std::vector<TokenId> tail(row.request.prompt.begin() + prompt_size,
                                      row.request.prompt.end());
      const auto& spec = *std::get_if<LabelSpec>(&row.request.output);
      ReadValues& read = values.emplace_back();
      read.log_sum_exp = 5;
      for (const TokenId token : spec.tokens) {
        read.values.push_back(static_cast<float>(std::log(P(tail, token)) + 5));
      }
      auto& logprobs = prompts.emplace_back();
      if (!row.request.prompt_logprobs) continue;
      const auto start = static_cast<size_t>(row.request.prompt_logprobs->start);
      for (size_t i = start - prompt_size; i < tail.size(); ++i) {
        logprobs.push_back(static_cast<float>(
            std::log(P({tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(i)}, tail[i]))));
      }
    }
    std::vector<RowOutput> outputs;
    for (size_t i = 0; i < values.size(); ++i) outputs.push_back({&values[i], prompts[i]});
    return reads.read(outputs);
  }
};

const std::vector<TokenId> kPrompt = {90, 91};

TEST(OptionPathsTest, OneTokenEachIsOneRow) {
  TableModel model;
  model.next[{}] = {{1, 0.5}, {2, 0.2}, {3, 0.1}};
  const QuestionReads reads = ReadPaths({}, kPrompt, {{{1}}, {{2}, {3}}}, true);
  ASSERT_EQ(reads.rows.size(), 1u);
  EXPECT_EQ(reads.rows[0].request.prompt, kPrompt);
  const OptionScores scores = model.Read(reads, kPrompt.size());
  EXPECT_NEAR(scores.logprobs[0], std::log(0.5), 1e-6);
  EXPECT_NEAR(scores.logprobs[1], std::log(0.3), 1e-6);  // probabilities of spellings are added
  EXPECT_NEAR(*scores.mass, 0.8, 1e-6);
  // The log-sum-exp is not computed if the mass is not wanted.
  const QuestionReads cheap = ReadPaths({}, kPrompt, {{{1}}, {{2}}}, false);
  EXPECT_FALSE(std::get_if<LabelSpec>(&cheap.rows[0].request.output)->want_log_sum_exp);
  EXPECT_FALSE(model.Read(cheap, kPrompt.size()).mass.has_value());
}

TEST(OptionPathsTest, LongerOptionsCostARowForEachPlaceWhereTheyEnd) {
  TableModel model;
  model.next[{}] = {{1, 0.5}, {2, 0.25}, {6, 0.25}};
  model.next[{1}] = {{3, 0.5}, {4, 0.25}};
  model.next[{2}] = {{5, 0.5}};
  model.next[{2, 5}] = {{3, 0.5}};
  // "1 3" and "1 4" are read in one row, "2 5 3" in another row, and 6 in the prompt's row.
  const QuestionReads reads =
      ReadPaths({}, kPrompt, {{{1, 3}}, {{1, 4}}, {{2, 5, 3}}, {{6}}}, false);
  ASSERT_EQ(reads.rows.size(), 3u);
  EXPECT_EQ(reads.rows[1].request.prompt, (std::vector<TokenId>{90, 91, 1}));
  EXPECT_FALSE(reads.rows[1].request.prompt_logprobs.has_value());
  EXPECT_EQ(reads.rows[2].request.prompt, (std::vector<TokenId>{90, 91, 2, 5}));
  EXPECT_EQ(reads.rows[2].request.prompt_logprobs->start, 3);
  const OptionScores scores = model.Read(reads, kPrompt.size());
  EXPECT_NEAR(scores.logprobs[0], std::log(0.25), 1e-6);
  EXPECT_NEAR(scores.logprobs[1], std::log(0.125), 1e-6);
  EXPECT_NEAR(scores.logprobs[2], std::log(0.0625), 1e-6);
  EXPECT_NEAR(scores.logprobs[3], std::log(0.25), 1e-6);
}

TEST(OptionPathsTest, AnOptionThatBeginsAnotherLosesWhatIsTheOther) {
  TableModel model;
  model.next[{}] = {{1, 0.5}, {9, 0.5}};
  model.next[{1}] = {{2, 0.5}};
  model.next[{1, 2}] = {{3, 0.5}};
  // "like" has 0.5, "like new" 0.25 of that text, "like new car" 0.125.
  const QuestionReads reads = ReadPaths({}, kPrompt, {{{1}}, {{1, 2}}, {{1, 2, 3}}}, false);
  const OptionScores scores = model.Read(reads, kPrompt.size());
  EXPECT_NEAR(std::exp(scores.logprobs[0]), 0.25, 1e-6);
  EXPECT_NEAR(std::exp(scores.logprobs[1]), 0.125, 1e-6);
  EXPECT_NEAR(std::exp(scores.logprobs[2]), 0.125, 1e-6);
  EXPECT_NEAR(*scores.mass, 0.5, 1e-6);
}

}  // namespace
}  // namespace skein
