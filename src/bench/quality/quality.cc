#include "bench/quality/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "server/decisions/decision_method_names.h"
#include "server/json/json.h"

namespace skein {
namespace {

// Sends all `bodies` and returns the answers in their order.
std::vector<HttpResponse> AskAll(const std::string& path, const std::vector<std::string>& bodies,
                                 int32_t window, const QualityAsk& ask) {
  std::mutex mutex;
  std::condition_variable changed;
  int32_t in_flight = 0;                               // guarded by mutex
  std::vector<HttpResponse> responses(bodies.size());  // guarded by mutex
  for (size_t i = 0; i < bodies.size(); ++i) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return in_flight < window; });
      ++in_flight;
    }
    ask(path, bodies[i], [&, i](HttpResponse response) {
      const std::lock_guard lock(mutex);
      responses[i] = std::move(response);
      --in_flight;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return in_flight == 0; });
  return responses;
}

const Json* Member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

Status WrongAnswer(const Json& answer) {
  return Status(StatusCode::kInternal, "not an answer as expected: " + DumpJson(answer));
}

std::string MessageOf(const HttpResponse& response) {
  const std::optional<Json> body = ParseJson(response.body);
  const Json* error = body ? Member(*body, "error") : nullptr;
  const Json* message = error != nullptr ? Member(*error, "message") : nullptr;
  return message != nullptr && message->is_string() ? message->get<std::string>() : response.body;
}

Status ReadScores(const Json& body, const QualityItem& item, QualityAnswer* answer) {
  const Json* results = Member(body, "results");
  if (results == nullptr || results->size() != item.documents.size()) return WrongAnswer(body);
  answer->probabilities.resize(item.documents.size());
  for (const Json& entry : *results) {
    const Json* index = Member(entry, "index");
    const Json* score = Member(entry, "relevance_score");
    if (index == nullptr || !index->is_number_unsigned() || score == nullptr ||
        !score->is_number() || index->get<size_t>() >= item.documents.size()) {
      return WrongAnswer(body);
    }
    answer->probabilities[index->get<size_t>()] = score->get<double>();
  }
  return Status::Ok();
}

Status ReadProbabilities(const Json& body, const QualityItem& item, QualityAnswer* answer) {
  const Json* answers = Member(body, "answers");
  if (answers == nullptr || answers->size() != 1) return WrongAnswer(body);
  const Json& one = (*answers)[0];
  if (item.type == QualityType::kPredicate) {
    const Json* p = Member(one, "probability");
    if (p == nullptr || !p->is_number()) return WrongAnswer(body);
    answer->probabilities = {p->get<double>(), 1 - p->get<double>()};
  } else {
    const Json* list = Member(one, "probabilities");
    if (list == nullptr || list->size() != item.labels.size()) return WrongAnswer(body);
    for (const Json& entry : *list) {
      const Json* p = Member(entry, "probability");
      if (p == nullptr || !p->is_number()) return WrongAnswer(body);
      answer->probabilities.push_back(p->get<double>());
    }
  }
  const Json* diagnostics = Member(one, "diagnostics");
  const Json* mass = diagnostics != nullptr ? Member(*diagnostics, "label_mass") : nullptr;
  if (mass != nullptr && mass->is_number()) answer->label_mass = mass->get<double>();
  return Status::Ok();
}

Result<QualityAnswer> AnswerOfResponse(const HttpResponse& response, const QualityItem& item) {
  QualityAnswer answer;
  if (response.status >= 400 && response.status < 500 && response.status != 429) {
    answer.refusal = MessageOf(response);
    return answer;
  }
  const std::optional<Json> body = ParseJson(response.body);
  if (response.status != 200 || !body) {
    return Status(StatusCode::kInternal, fmt::format("{}: answered by {}: {}", item.id,
                                                     response.status, MessageOf(response)));
  }
  SKEIN_RETURN_IF_ERROR(item.type == QualityType::kRelevance
                            ? ReadScores(*body, item, &answer)
                            : ReadProbabilities(*body, item, &answer));
  const Json* usage = Member(*body, "usage");
  for (const char* name : {"input_tokens", "prompt_tokens"}) {
    const Json* tokens = usage != nullptr ? Member(*usage, name) : nullptr;
    if (tokens != nullptr && tokens->is_number_integer()) {
      answer.input_tokens = tokens->get<int64_t>();
    }
  }
  return answer;
}

size_t ModeOf(const std::vector<double>& probabilities) {
  return static_cast<size_t>(std::ranges::max_element(probabilities) - probabilities.begin());
}

// Asks again with reversed choices, and sets `flipped` of each answer.
Status AskReversed(const std::vector<QualityItem>& items, const QualityLoad& load,
                   const QualityAsk& ask, const std::string& path, QualityRun* run) {
  std::vector<std::string> bodies;
  for (const size_t index : run->items) {
    Json body = QualityBody(items, index, run->method, load.num_examples);
    body["questions"][0] = ReversedQuestion(items[index].question);
    bodies.push_back(DumpJson(body));
  }
  const std::vector<HttpResponse> responses = AskAll(path, bodies, load.window, ask);
  for (size_t i = 0; i < responses.size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(const QualityAnswer reversed,
                           AnswerOfResponse(responses[i], items[run->items[i]]));
    QualityAnswer& answer = run->answers[i];
    if (!reversed.refusal.empty() || !answer.refusal.empty()) continue;
    const size_t last = answer.probabilities.size() - 1;
    answer.flipped = last - ModeOf(reversed.probabilities) != ModeOf(answer.probabilities);
  }
  return Status::Ok();
}

}  // namespace

Json QualityBody(const std::vector<QualityItem>& items, size_t index, const QualityMethod& method,
                 size_t num_examples) {
  const QualityItem& item = items[index];
  Json body;
  if (item.type == QualityType::kRelevance) {
    body["query"] = item.query;
    body["documents"] = item.documents;
    body["return_documents"] = false;
  } else {
    body["input"] = item.input;
    body["questions"] = Json::array({item.question});
    for (const size_t example : ExamplesFor(items, index, num_examples)) {
      body["examples"].push_back({{"input", items[example].input},
                                  {"answers", Json::array({items[example].answer_value})}});
    }
  }
  if (method.own) return body;
  body["reading"] = ReadingName(method.method);
  body["prompt"] = NameOf(method.method.prompt);
  body["temperature"] = 1;
  return body;
}

Result<QualityRun> RunQuality(const std::vector<QualityItem>& items, QualityType type,
                              const QualityMethod& method, const QualityLoad& load,
                              const Clock& clock, const QualityAsk& ask) {
  QualityRun run;
  run.type = type;
  run.method = method;
  const std::string path = type == QualityType::kRelevance ? "/rerank" : "/v1/decisions";
  std::vector<std::string> bodies;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].type != type) continue;
    run.items.push_back(i);
    bodies.push_back(DumpJson(QualityBody(items, i, method, load.num_examples)));
  }
  if (bodies.empty()) return run;
  (void)AskAll(path, {bodies[0]}, 1, ask);  // warm-up
  const TimeUs begin_us = clock.NowUs();
  const std::vector<HttpResponse> responses = AskAll(path, bodies, load.window, ask);
  const auto us = static_cast<double>(clock.NowUs() - begin_us);
  run.ms_per_item = us / 1e3 / static_cast<double>(bodies.size());
  for (size_t i = 0; i < responses.size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(QualityAnswer answer,
                           AnswerOfResponse(responses[i], items[run.items[i]]));
    answer.num_examples = ExamplesFor(items, run.items[i], load.num_examples).size();
    run.answers.push_back(std::move(answer));
  }
  if (type == QualityType::kChoice && load.reverse_choices) {
    SKEIN_RETURN_IF_ERROR(AskReversed(items, load, ask, path, &run));
  }
  return run;
}

}  // namespace skein
