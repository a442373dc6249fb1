#include "apps/decide/decide_lines.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace skein {
namespace {

Status Invalid(std::string message, std::string param) {
  return Status(StatusCode::kInvalidArgument, std::move(message), std::move(param));
}

HttpResponse Refusal(const Status& status) {
  Json error = {{"message", status.message()}, {"type", "invalid_request_error"}};
  error["param"] = status.param().empty() ? Json(nullptr) : Json(status.param());
  HttpResponse response;
  response.status = 400;
  response.body = DumpJson({{"error", std::move(error)}});
  return response;
}

// The answers that have come and whose turn to be written has not come yet.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, HttpResponse> answered;  // by line; guarded by mutex
};

}  // namespace

Result<DecideQuestions> ParseDecideQuestions(const std::string& text) {
  std::string why;
  std::optional<Json> json = ParseJson(text, &why);
  if (!json) return Invalid("questions: not JSON: " + why, "questions");
  DecideQuestions questions;
  if (json->is_array()) {
    questions.body["questions"] = *std::move(json);
  } else if (json->is_object() && json->contains("questions")) {
    questions.body = *std::move(json);
  } else {
    return Invalid("questions: must be an array of questions or an object with \"questions\"",
                   "questions");
  }
  const bool by_id = questions.body["questions"].is_object();
  questions.path = by_id ? "/v1/systemone" : "/v1/decisions";
  for (const char* name : {"input", "state"}) {
    if (questions.body.contains(name)) {
      return Invalid(std::string("questions: \"") + name + "\" comes from each line of the input",
                     name);
    }
  }
  return questions;
}

Result<DecideLine> ParseDecideLine(const std::string& line, const DecideQuestions& questions) {
  const std::string name = questions.path == "/v1/systemone" ? "state" : "input";
  std::string why;
  std::optional<Json> json = ParseJson(line, &why);
  if (!json) return Invalid("the line is not JSON: " + why, "");
  DecideLine parsed;
  parsed.kept = Json::object();
  Json body = questions.body;
  if (json->is_object() && json->contains(name)) {
    body[name] = std::move((*json)[name]);
    json->erase(name);
    parsed.kept = *std::move(json);
  } else if (json->is_string() || json->is_array()) {
    body[name] = *std::move(json);
  } else {
    return Invalid("the line must be a string, an array or an object with \"" + name + "\"", name);
  }
  parsed.body = DumpJson(body);
  return parsed;
}

std::string FormatDecideAnswer(const Json& kept, const HttpResponse& response) {
  Json line = kept;
  if (std::optional<Json> body = ParseJson(response.body); body && body->is_object()) {
    for (const char* name : {"answers", "usage", "error"}) {
      if (body->contains(name)) line[name] = std::move((*body)[name]);
    }
  } else {
    line["error"] = {{"message", response.body}};
  }
  return DumpJson(line) + "\n";
}

DecideProgress DecideLines(std::istream& in, int64_t skip, int32_t window,
                           const DecideQuestions& questions, const DecideAsk& ask,
                           const std::function<bool(const std::string&)>& write,
                           const std::function<void(const DecideProgress&)>& progress) {
  const auto pending = std::make_shared<Pending>();
  std::map<int64_t, Json> kept;  // of lines that are not written yet
  DecideProgress done;
  int64_t next = 0;  // the next line to be written
  int64_t end = 0;   // number of lines read so far
  bool at_end = false;
  bool failed = false;  // the remaining answers are awaited, but not written
  std::string line;
  while (true) {
    while (!at_end && end - next < window) {
      at_end = !std::getline(in, line);
      if (at_end || line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (skip > 0) {
        --skip;
        continue;
      }
      const int64_t index = end++;
      const auto put = [pending, index](HttpResponse response) {
        const std::lock_guard lock(pending->mutex);
        pending->answered.emplace(index, std::move(response));
        pending->changed.notify_one();
      };
      Result<DecideLine> parsed = ParseDecideLine(line, questions);
      kept[index] = parsed.ok() ? std::move(parsed.value().kept) : Json::object();
      parsed.ok() ? ask(std::move(parsed.value().body), put) : put(Refusal(parsed.status()));
    }
    if (next == end) return done;
    std::unique_lock lock(pending->mutex);
    pending->changed.wait(lock, [&] { return pending->answered.contains(next); });
    const HttpResponse response = std::move(pending->answered.extract(next).mapped());
    lock.unlock();
    const std::string answer = FormatDecideAnswer(kept.extract(next).mapped(), response);
    ++next;
    if (failed) continue;
    if (!write(answer)) {
      failed = at_end = true;
      continue;
    }
    ++done.answered;
    if (response.status != 200) ++done.failed;
    progress(done);
  }
}

}  // namespace skein
