#include <sstream>
#include <string>
#include <vector>

#include "apps/decide/decide_lines.h"
#include "base/check.h"
#include "harness.h"

namespace skein::fuzz {
namespace {

constexpr int32_t kWindow = 3;

// Answers by what the body holds, at once.
void Ask(std::string body, const std::function<void(HttpResponse)>& done) {
  SKEIN_CHECK(ParseJson(body).has_value());
  HttpResponse response;
  response.status = body.size() % 3 == 0 ? 400 : 200;
  response.body = body.size() % 5 == 0 ? body : R"({"answers": [], "usage": {"input_tokens": 1}})";
  done(std::move(response));
}

}  // namespace

// The questions' file, the mark, the file of inputs. Every line that is not empty has one line of
// an answer, in order.
void FuzzDecideFile(Bytes data) {
  const auto [questions_text, lines] = PartsOf(TextOf(data));
  const auto questions = ParseDecideQuestions(std::string(questions_text));
  if (!questions.ok()) {
    SKEIN_CHECK(!questions.status().message().empty());
    return;
  }
  int64_t want = 0;
  std::istringstream counted{std::string(lines)};
  for (std::string line; std::getline(counted, line);) {
    want += line.find_first_not_of(" \t\r") != line.npos;
  }
  std::istringstream in{std::string(lines)};
  int64_t got = 0;
  const auto write = [&](const std::string& line) {
    ++got;
    SKEIN_CHECK(line.ends_with('\n') && line.find('\n') == line.size() - 1);
    SKEIN_CHECK(ParseJson(line).has_value());
    return true;
  };
  const DecideProgress progress =
      DecideLines(in, 0, kWindow, questions.value(), Ask, write, [](const DecideProgress&) {});
  SKEIN_CHECK(got == want && progress.answered == want && progress.failed <= want);
}

}  // namespace skein::fuzz
