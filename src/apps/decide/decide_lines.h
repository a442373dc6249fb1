#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

#include "base/result.h"
#include "server/http/http_message.h"
#include "server/json/json.h"

namespace skein {

// The questions that `skein decide` asks about every input: the members of a /v1/decisions request
// without its input. If the member `questions` is an object, they are the members of a
// /v1/systemone request.
struct DecideQuestions {
  std::string path;  // "/v1/decisions" or "/v1/systemone"
  Json body;
};

// Parses the text of a questions file: an object with "questions", or only the array of questions.
Result<DecideQuestions> ParseDecideQuestions(const std::string& text);

// The request for one line of input. The line is a JSON string (the input), an array (input
// messages), or an object with "input" (or "state"); further members of the object are kept for the
// answer.
struct DecideLine {
  std::string body;  // of the HTTP request
  Json kept;         // an object
};
Result<DecideLine> ParseDecideLine(const std::string& line, const DecideQuestions& questions);

// One line of output: the kept members, then the answers and the usage, or {"error": ...}.
std::string FormatDecideAnswer(const Json& kept, const HttpResponse& response);

// Sends a request; `done` may run on any thread.
using DecideAsk = std::function<void(std::string body, std::function<void(HttpResponse)> done)>;

struct DecideProgress {
  int64_t answered = 0;
  int64_t failed = 0;  // the number of these that were answered by an error
};

// Asks about each line of `in` from line number `skip` on (empty lines are left out and not
// numbered), at most `window` lines at a time. Passes the answers to `write` in the order of the
// lines, each as soon as all answers before it have come. A line that is not a valid input is
// answered by an error. Returns when all lines are answered. If `write` returns false, no further
// line is read or written. `write` and `progress` run on the caller's thread.
DecideProgress DecideLines(std::istream& in, int64_t skip, int32_t window,
                           const DecideQuestions& questions, const DecideAsk& ask,
                           const std::function<bool(const std::string&)>& write,
                           const std::function<void(const DecideProgress&)>& progress);

}  // namespace skein
