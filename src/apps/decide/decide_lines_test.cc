#include "apps/decide/decide_lines.h"

#include <gtest/gtest.h>

#include <deque>
#include <sstream>
#include <utility>
#include <vector>

namespace skein {
namespace {

DecideQuestions Questions(const std::string& text) {
  auto questions = ParseDecideQuestions(text);
  EXPECT_TRUE(questions.ok()) << questions.status().message();
  return questions.ok() ? questions.value() : DecideQuestions{};
}

TEST(DecideLinesTest, TellsTheTwoKindsOfQuestionsApart) {
  EXPECT_EQ(Questions(R"([{"type": "predicate"}])").path, "/v1/decisions");
  EXPECT_EQ(Questions(R"({"questions": [], "model": "m"})").body["model"], "m");
  EXPECT_EQ(Questions(R"({"questions": {"a": {"type": "noul"}}})").path, "/v1/systemone");
  for (const char* text : {"", "7", "{}", R"({"questions": [], "input": "x"})",
                           R"({"questions": {}, "state": "x"})"}) {
    EXPECT_EQ(ParseDecideQuestions(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(DecideLinesTest, KeepsWhatAnInputBringsBesideItsText) {
  const DecideQuestions questions = Questions(R"([{"type": "predicate", "instructions": "?"}])");
  const auto line = ParseDecideLine(R"({"id": 7, "input": "text", "tag": "t"})", questions);
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(DumpJson(line.value().kept), R"({"id":7,"tag":"t"})");
  EXPECT_EQ(line.value().body,
            R"({"questions":[{"type":"predicate","instructions":"?"}],"input":"text"})");
  EXPECT_FALSE(ParseDecideLine(R"({"id": 7})", questions).ok());
  EXPECT_FALSE(ParseDecideLine("text", questions).ok());
}

TEST(DecideLinesTest, AnswersComeInOrderAndFewAtATime) {
  std::stringstream in;
  for (int i = 0; i < 20; ++i) in << "\"" << i << "\"\n\n";
  in << "no JSON\n\"last\"";
  std::deque<std::pair<std::string, std::function<void(HttpResponse)>>> asked;
  size_t most = 0;
  std::string out;
  const auto answer = [&](size_t at) {
    HttpResponse response;
    response.body = R"({"answers": [)" + asked[at].first + "]}";
    asked[at].second(response);
    asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const auto ask = [&](std::string body, std::function<void(HttpResponse)> done) {
    asked.emplace_back((*ParseJson(body))["input"].dump(), std::move(done));
    most = std::max(most, asked.size());
    if (asked.size() == 4) {  // answers the last request first
      while (!asked.empty()) answer(asked.size() - 1);
    }
  };
  // Two of the 22 lines are skipped. The other 20 lines make five windows of four; one of them is
  // the malformed line.
  const DecideQuestions questions = Questions("[]");
  DecideProgress last;
  int64_t calls = 0;
  const auto write = [&](const std::string& line) {
    out += line;
    return true;
  };
  const auto progress = [&](const DecideProgress& now) {
    last = now;
    ++calls;
    // The malformed line never reaches `ask`, so the last window has only three requests.
    if (now.answered >= 16) {
      while (!asked.empty()) answer(asked.size() - 1);
    }
  };
  const DecideProgress done = DecideLines(in, 2, 4, questions, ask, write, progress);
  EXPECT_EQ(done.answered, 20);
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(last.answered, 20);
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(most, 4u);
  std::string expected;
  for (int i = 2; i < 20; ++i) expected += "{\"answers\":[\"" + std::to_string(i) + "\"]}\n";
  EXPECT_EQ(out.substr(0, expected.size()), expected);
  EXPECT_NE(out.find("\"error\""), std::string::npos);
  EXPECT_TRUE(out.ends_with("{\"answers\":[\"last\"]}\n"));
}

// A full disk: requests that run are awaited, and no further line is asked.
TEST(DecideLinesTest, StopsWhenItCannotWrite) {
  const auto questions = ParseDecideQuestions(R"([{"type": "predicate", "instructions": "?"}])");
  ASSERT_TRUE(questions.ok());
  std::istringstream in("\"a\"\n\"b\"\n\"c\"\n\"d\"\n\"e\"\n\"f\"\n");
  int asked = 0, written = 0;
  const auto ask = [&](const std::string&, const std::function<void(HttpResponse)>& done) {
    ++asked;
    done(HttpResponse{.body = "{}"});
  };
  const auto write = [&](const std::string&) { return ++written < 2; };
  const DecideProgress done =
      DecideLines(in, 0, 2, questions.value(), ask, write, [](const DecideProgress&) {});
  EXPECT_EQ(done.answered, 1);
  EXPECT_EQ(written, 2);
  EXPECT_LE(asked, 4);
}

}  // namespace
}  // namespace skein
