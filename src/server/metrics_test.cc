#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Slo(const std::string& kind, const std::string& route_class, bool met,
                const std::string& bound, int count) {
  return "skein_slo_" + kind + "_total{class=\"" + route_class + "\",met=\"" +
         (met ? "true" : "false") + "\",model_name=\"fake\",slo_le=\"" + bound + "\"} " +
         std::to_string(count) + "\n";
}

// The fake's first token comes 2 ms after the arrival, and its end 6 ms after the first token. Its
// reply has 13 tokens.
class SloMetricsTest : public DecisionServerTest {
 protected:
  std::string AfterCompletion(const std::string& fields) {
    const Answer answer = Complete(fields);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Get("/metrics").body;
  }
};

TEST_F(SloMetricsTest, TpotIsTheMeanOverTheFurtherTokens) {
  Start();
  EXPECT_THAT(AfterCompletion(R"("slo_tpot_ms": 0.5)"),
              HasSubstr(Slo("tpot", "generate", true, "0.01", 1)));
  const std::string text = AfterCompletion(R"("slo_tpot_ms": 0.499)");
  EXPECT_THAT(text, HasSubstr(Slo("tpot", "generate", true, "0.01", 1)));
  EXPECT_THAT(text, HasSubstr(Slo("tpot", "generate", false, "0.01", 1)));
}

// Choices are generated in parallel, so a larger number of them does not shorten the time per
// token.
TEST_F(SloMetricsTest, TpotOfSeveralChoicesIsThatOfOne) {
  Start();
  EXPECT_THAT(AfterCompletion(R"("n": 4, "slo_tpot_ms": 0.499)"),
              HasSubstr(Slo("tpot", "generate", false, "0.01", 1)));
  EXPECT_THAT(AfterCompletion(R"("n": 4, "slo_tpot_ms": 0.5)"),
              HasSubstr(Slo("tpot", "generate", true, "0.01", 1)));
}

TEST_F(SloMetricsTest, TpotCountsTheTokensOfTheLongestChoice) {
  Start();
  engine_.set_lag(4);  // 13 and 17 tokens: the TPOT is 375 us
  EXPECT_THAT(AfterCompletion(R"("n": 2, "max_tokens": 32, "slo_tpot_ms": 0.375)"),
              HasSubstr(Slo("tpot", "generate", true, "0.01", 1)));
  EXPECT_THAT(AfterCompletion(R"("n": 2, "max_tokens": 32, "slo_tpot_ms": 0.374)"),
              HasSubstr(Slo("tpot", "generate", false, "0.01", 1)));
}

// The engine reports the end of the first choice long before the second one ends.
TEST_F(SloMetricsTest, TpotLastsUntilTheLastStopString) {
  Start();
  engine_.set_lag(3);
  engine_.set_delay(std::chrono::milliseconds(5));
  // The second choice stops at its 11th token, at least 55 ms after the first choice's first token.
  const std::string text = AfterCompletion(R"("n": 2, "stop": ["w"], "slo_tpot_ms": 5.4)");
  EXPECT_THAT(text, HasSubstr(Slo("tpot", "generate", false, "0.01", 1)));
  EXPECT_THAT(text, Not(HasSubstr(Slo("tpot", "generate", true, "0.01", 1))));
}

TEST_F(SloMetricsTest, OneTokenHasNoTpot) {
  Start();
  EXPECT_THAT(AfterCompletion(R"("n": 4, "max_tokens": 1, "slo_tpot_ms": 20)"),
              Not(HasSubstr("skein_slo_tpot_total{")));
}

TEST_F(SloMetricsTest, TtftCountsByClassOfRoute) {
  StartModel([](ModelEntry* entry) {
    entry->traits.embeds = true;
    entry->traits.embedding_size = 2;
  });
  const auto post = [this](const std::string& path, const std::string& fields) {
    for (const char* slo : {"1.999", "2", "3"}) {
      const Answer answer = Post(path, "{" + fields + ", \"slo_ttft_ms\": " + slo + "}");
      EXPECT_EQ(answer.status, 200) << answer.body;
    }
  };
  post("/v1/decisions",
       R"("input": "Sky.", "questions": [{"type": "predicate", "instructions": "Rain?"}])");
  post("/v1/score", R"("query": "q ", "items": ["a", "bb"], "label_token_ids": [65, 66])");
  post("/v1/embeddings", R"("input": "ab")");
  post("/v1/completions", R"("prompt": "ab", "max_tokens": 1)");
  const std::string text = Get("/metrics").body;
  for (const char* route_class : {"decide", "rank", "embed", "generate"}) {
    const int reads = std::string(route_class) == "rank" ? 2 : 1;  // one for each item
    EXPECT_THAT(text, HasSubstr(Slo("ttft", route_class, false, "0.01", reads)));
    EXPECT_THAT(text, HasSubstr(Slo("ttft", route_class, true, "0.01", 2 * reads)));
  }
}

class SlowTokenizer final : public ByteTokenizer {
 public:
  Status Encode(std::string_view text, bool add_special_tokens,
                std::vector<TokenId>* ids) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ByteTokenizer::Encode(text, add_special_tokens, ids);
  }
};

TEST_F(SloMetricsTest, PromptsOfACallShareItsTimeOfTokenizing) {
  const SlowTokenizer tokenizer;
  StartModel([&](ModelEntry* entry) { entry->tokenizer = &tokenizer; });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": ["a", "b", "c", "d"]})").status, 200);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const std::string text = Get("/metrics").body;
  const std::string name = "skein_request_tokenize_time_seconds_sum{model_name=\"fake\"} ";
  const size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  const double sum = std::stod(text.substr(at + name.size()));
  EXPECT_GE(sum, 0.08);
  EXPECT_LE(sum, whole.count());
}

}  // namespace
}  // namespace skein::testing
