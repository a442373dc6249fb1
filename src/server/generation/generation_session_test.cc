#include "server/generation/generation_session.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/server_fakes.h"

namespace skein::testing {
namespace {

RequestOutput Output(std::string_view bytes, std::optional<FinishReason> finish = {}) {
  RequestOutput output;
  for (unsigned char byte : bytes) output.tokens.push_back({.token = byte});
  output.finish = finish;
  return output;
}

// Feeds the bytes as outputs that are cut at random places. Returns the text and the reason for its
// end.
std::pair<std::string, StopReason> Feed(const std::string& bytes, const TextOptions& options,
                                        std::mt19937* random) {
  const ByteTokenizer tokenizer;
  GenerationSession session(&tokenizer, options, 1, {});
  std::string text;
  StopReason reason;
  size_t at = 0;
  while (!session.done()) {
    const size_t count = std::min<size_t>(bytes.size() - at, (*random)() % 4);
    const bool last = at + count == bytes.size();
    auto delta =
        session.Consume(Output(std::string_view(bytes).substr(at, count),
                               last ? std::optional(FinishReason::kLength) : std::nullopt));
    at += count;
    text += delta->text;
    reason = delta->stop_reason;
  }
  return {text, reason};
}

TEST(GenerationSession, TextIsTheSameHoweverOutputsAreCut) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (int k = static_cast<int>(random() % 20); k > 0; --k) {
      bytes +=
          random() % 4 == 0 ? "\xC3\xA9" : std::string(1, static_cast<char>('a' + random() % 3));
    }
    const std::string stop = std::string(1 + random() % 2, 'a') + (random() % 2 ? "b" : "\xC3\xA9");
    const auto [text, reason] = Feed(bytes, {.stop = {stop}}, &random);
    const size_t found = bytes.find(stop);
    EXPECT_EQ(text, bytes.substr(0, found));
    EXPECT_EQ(std::holds_alternative<std::string>(reason), found != std::string::npos);
  }
}

TEST(GenerationSession, CharacterThatBeganInThePromptIsNotRepeated) {
  const ByteTokenizer tokenizer;
  const std::vector<TokenId> prompt = {'x', 0xC3};
  GenerationSession session(&tokenizer, {}, 1, prompt);
  EXPECT_EQ(session.Consume(Output("\xA9"))->text, "\xC3\xA9");
  EXPECT_EQ(session.Consume(Output("y"))->text, "y");
}

TEST(GenerationSession, OutputsAfterAStopStringAreDropped) {
  const ByteTokenizer tokenizer;
  GenerationSession session(&tokenizer, {.stop = {"b"}}, 2, {});
  auto delta = session.Consume(Output("abc"));
  EXPECT_EQ(delta->text, "a");
  EXPECT_TRUE(delta->stopped_by_string);
  EXPECT_EQ(delta->tokens.size(), 2u);  // up to the token that completed the stop string
  EXPECT_FALSE(session.Consume(Output("d")));
  EXPECT_FALSE(session.Consume(Output("", FinishReason::kCancelled)));
  EXPECT_FALSE(session.done());
  RequestOutput other = Output("x", FinishReason::kLength);
  other.sample = 1;
  other.cached_tokens = 5;
  EXPECT_EQ(session.Consume(other)->text, "x");
  EXPECT_TRUE(session.done());
  EXPECT_EQ(session.completion_tokens(), 3);
  EXPECT_EQ(session.longest_choice_tokens(), 2);
  EXPECT_EQ(session.cached_tokens(), 5);
}

TEST(GenerationSession, StopStringsMayBeginButNotEndBeforeTheLeastTokens) {
  const ByteTokenizer tokenizer;
  GenerationSession crossing(&tokenizer, {.stop = {"\n\n"}, .min_tokens = 2}, 1, {});
  EXPECT_EQ(crossing.Consume(Output("a\n"))->text, "a");
  auto delta = crossing.Consume(Output("\n"));
  EXPECT_EQ(delta->text, "");
  EXPECT_EQ(delta->finish, FinishReason::kStop);
  GenerationSession within(&tokenizer, {.stop = {"aba"}, .min_tokens = 3}, 1, {});
  // The last character may begin another stop string.
  EXPECT_EQ(within.Consume(Output("aba"))->text, "ab");
  delta = within.Consume(Output("b"));
  EXPECT_EQ(delta->text, "");
  EXPECT_FALSE(delta->finish);
  delta = within.Consume(Output("a"));
  EXPECT_EQ(delta->text, "");
  EXPECT_EQ(delta->finish, FinishReason::kStop);
}

TEST(GenerationSession, StopTokenInAnOutputOfItsOwnIsHidden) {
  const ByteTokenizer tokenizer;
  GenerationSession session(&tokenizer, {.stop_token_ids = {'!'}}, 1, {});
  EXPECT_EQ(session.Consume(Output("a!"))->text, "a");
  auto delta = session.Consume(Output("", FinishReason::kStop));
  EXPECT_EQ(delta->text, "");
  EXPECT_EQ(std::get<TokenId>(delta->stop_reason), '!');
}

TEST(GenerationSession, FailureCarriesItsStatus) {
  const ByteTokenizer tokenizer;
  GenerationSession session(&tokenizer, {}, 1, {});
  RequestOutput output = Output("a", FinishReason::kError);
  output.status = Status(StatusCode::kInternal, "broken");
  auto delta = session.Consume(std::move(output));
  EXPECT_EQ(delta->finish, FinishReason::kError);
  EXPECT_EQ(delta->status.message(), "broken");
}

}  // namespace
}  // namespace skein::testing
