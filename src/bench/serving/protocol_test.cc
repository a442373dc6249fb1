#include "bench/serving/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string CompletionEvent(const std::string& text, bool ends = false) {
  nlohmann::json choice = {{"text", text}, {"finish_reason", nullptr}};
  if (ends) choice["finish_reason"] = "stop";
  return "data: " + nlohmann::json{{"choices", {choice}}}.dump() + "\n\n";
}

std::string Delta(const nlohmann::json& delta, bool ends = false) {
  nlohmann::json choice = {{"delta", delta}};
  if (ends) choice["finish_reason"] = "stop";
  return "data: " + nlohmann::json{{"choices", {choice}}}.dump() + "\n\n";
}

LoadRecord Finish(BenchAnswerReader& reader) {
  LoadRecord record;
  reader.Finish(&record);
  return record;
}

TEST(BenchAnswerReaderTest, ChatRoleIsNoToken) {
  BenchAnswerReader reader;
  reader.Feed(Delta({{"role", "assistant"}, {"content", ""}}), 10);
  reader.Feed(Delta({{"content", "Hi"}}), 100);
  reader.Feed(Delta({{"reasoning_content", "hm"}}), 150);
  reader.Feed(Delta(nlohmann::json::object(), true), 160);
  reader.Feed("data: [DONE]\n\n", 170);
  const LoadRecord record = Finish(reader);
  EXPECT_TRUE(record.ok) << record.error;
  EXPECT_EQ(record.ttft_us, 100);
  EXPECT_THAT(record.itl_us, ElementsAre(50));
  EXPECT_EQ(record.e2el_us, 160);
  EXPECT_EQ(record.output_tokens, 2);  // without usage, pieces are counted
}

TEST(BenchAnswerReaderTest, HalfCharactersAndLoneEndsAreTokens) {
  BenchAnswerReader halves;
  halves.Feed(CompletionEvent("") + CompletionEvent("\u00e9"), 5);
  halves.Feed(CompletionEvent("", true), 9);
  EXPECT_EQ(Finish(halves).output_tokens, 2);
  BenchAnswerReader lone;  // one token whose text came at the end
  lone.Feed(CompletionEvent("", true), 7);
  const LoadRecord record = Finish(lone);
  EXPECT_TRUE(record.ok);
  EXPECT_EQ(record.ttft_us, 7);
  EXPECT_EQ(record.output_tokens, 1);
}

TEST(BenchAnswerReaderTest, AnyCutGivesTheSameAnswer) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string stream =
      ": hello\r\n\r\nevent: x\r\n" + CompletionEvent("a") + CompletionEvent("b\n") +
      CompletionEvent("c", true) +
      "data:{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":7}}\r\n\r\n" +
      "data: [DONE]\r\n\r\n";
  for (int round = 0; round < 200; ++round) {
    BenchAnswerReader reader;
    for (size_t at = 0; at < stream.size();) {
      const size_t size = std::min<size_t>(1 + random() % 40, stream.size() - at);
      reader.Feed(std::string_view(stream).substr(at, size), static_cast<TimeUs>(at + size));
      at += size;
    }
    const LoadRecord record = Finish(reader);
    EXPECT_TRUE(record.ok) << record.error;
    EXPECT_EQ(record.prompt_tokens, 9);
    EXPECT_EQ(record.output_tokens, 7);
    EXPECT_EQ(record.itl_us.size(), 2u);
  }
}

TEST(BenchAnswerReaderTest, Failures) {
  BenchAnswerReader empty;
  EXPECT_THAT(Finish(empty).error, HasSubstr("ended before"));
  BenchAnswerReader garbage;
  garbage.Feed("data: {oops\n\ndata: [DONE]\n\n", 1);
  EXPECT_THAT(Finish(garbage).error, HasSubstr("not a JSON object"));
  BenchAnswerReader error;
  error.Feed("data: {\"error\":\"bad\"}\n\ndata: [DONE]\n\n", 1);
  EXPECT_THAT(Finish(error).error, HasSubstr("bad"));
}

TEST(BenchRequestTest, ChatTakesWords) {
  WorkloadRequest request;
  request.segments = {{"a", 2}, {"b", 3}};
  BenchRequestFormat format;
  format.endpoint = BenchEndpoint::kChat;
  ASSERT_TRUE(CheckBenchRequest(request, format).ok());
  const auto body = nlohmann::json::parse(MakeBenchRequestBody(request, 0, format));
  std::string words;
  ExpandSegmentAsText("a", 2, &words);
  ExpandSegmentAsText("b", 3, &words);
  EXPECT_EQ(body["messages"][0]["content"], words);
  EXPECT_FALSE(body.contains("prompt"));
  EXPECT_FALSE(body.contains("temperature"));
}

TEST(DescribeHttpErrorTest, FindsTheMessage) {
  EXPECT_EQ(DescribeHttpError(400, R"({"error":{"message":"no"}})"), "HTTP 400: no");
  EXPECT_EQ(DescribeHttpError(404, R"({"message":"gone"})"), "HTTP 404: gone");
  EXPECT_EQ(DescribeHttpError(502, "bad\ngateway"), "HTTP 502: bad gateway");
}

}  // namespace
}  // namespace skein
