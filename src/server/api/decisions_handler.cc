#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "server/api/systemone_request.h"
#include "server/decisions/decision_answer.h"
#include "server/decisions/decision_input.h"
#include "server/decisions/decision_reads.h"
#include "server/decisions/decision_requests.h"
#include "server/decisions/heads/head_reading.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/reads/read_session.h"
#include "server/routes.h"

namespace skein {
namespace {

// The parts of a question that its answer repeats.
struct Echo {
  DecisionKind kind = DecisionKind::kPredicate;
  Json name;                 // null: unset
  std::vector<Json> values;  // the values of choices; the labels of levels
};

// Reads an array of min to max objects. Returns null after it has refused another value.
const Json* Objects(FieldReader* reader, const std::string& name, size_t min, size_t max,
                    const char* of) {
  const std::string allowed = fmt::format("an array of {} to {} {}", min, max, of);
  const Json* list = reader->Find(name);
  if (list == nullptr) {
    reader->Refuse(name, fmt::format("{} must be {}", name, allowed));
    return nullptr;
  }
  if (!list->is_array() || list->size() < min || list->size() > max) {
    reader->RefuseValue(name, allowed, *list);
    return nullptr;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i].is_object()) continue;
    reader->RefuseValue(fmt::format("{}[{}]", name, i), "an object", (*list)[i]);
    return nullptr;
  }
  return list;
}

Status ReadChoices(const Json& object, DecisionQuestion* question, Echo* echo) {
  FieldReader reader(object);
  const Json* choices = Objects(&reader, "choices", kChoicesMin, kChoicesMax, "choices");
  if (choices == nullptr) return reader.status();
  bool has_bool = false;
  for (size_t i = 0; i < choices->size(); ++i) {
    FieldReader choice((*choices)[i]);
    const std::string place = fmt::format("choices[{}]", i);
    const Json* value = choice.Find("value");
    if (value == nullptr || !(value->is_string() || value->is_boolean()) || *value == "") {
      choice.RefuseValue("value", "a string that is not empty, or a boolean",
                         value == nullptr ? Json(nullptr) : *value);
      return Within(place, choice.status());
    }
    for (size_t j = 0; j < i; ++j) {
      if (echo->values[j] != *value) continue;
      choice.Refuse("value", fmt::format("value must differ from that of choices[{}]", j));
    }
    has_bool = has_bool || value->is_boolean();
    echo->values.push_back(*value);
    question->options.push_back({value->is_string() ? value->get<std::string>() : DumpJson(*value),
                                 choice.String("description").value_or("")});
    SKEIN_RETURN_IF_ERROR(Within(place, choice.status()));
  }
  for (size_t i = 0; i < choices->size() && has_bool; ++i) {
    std::string& name = question->options[i].name;
    if (echo->values[i].is_string() && (name == "true" || name == "false")) {
      name = DumpJson(echo->values[i]);
    }
  }
  return Status::Ok();
}

Status ReadLevels(const Json& object, DecisionQuestion* question, Echo* echo) {
  FieldReader reader(object);
  const Json* levels = Objects(&reader, "levels", kLevelsMin, kLevelsMax, "levels");
  if (levels == nullptr) return reader.status();
  for (size_t i = 0; i < levels->size(); ++i) {
    FieldReader level((*levels)[i]);
    const auto label = level.String("label");
    if (!label || label->empty()) level.Refuse("label", "label must be a string that is not empty");
    question->options.push_back({label.value_or(""), level.String("description").value_or("")});
    echo->values.emplace_back(label.value_or(""));
    SKEIN_RETURN_IF_ERROR(Within(fmt::format("levels[{}]", i), level.status()));
  }
  return Status::Ok();
}

// Reads the descriptions of a predicate's answers. The field is an extension of Skein.
Status ReadCriteria(const Json& object, DecisionQuestion* question) {
  FieldReader reader(object);
  const Json* criteria = reader.Object("criteria");
  if (criteria == nullptr) return reader.status();
  FieldReader texts(*criteria);
  question->options[0].description = texts.String("true").value_or("");
  question->options[1].description = texts.String("false").value_or("");
  return Within("criteria", texts.status());
}

// Reads one element of `questions`. Errors name fields relative to the element.
Status ReadQuestion(const Json& object, DecisionQuestion* question, Echo* echo) {
  FieldReader reader(object);
  const std::string type = reader.String("type").value_or("");
  const auto name = reader.String("name");
  if (name) echo->name = *name;
  if (type != "predicate" && type != "choice" && type != "score") {
    reader.RefuseValue("type", "\"predicate\", \"choice\" or \"score\"", Json(type));
  }
  SKEIN_RETURN_IF_ERROR(reader.status());
  question->cue = reader.String("cue").value_or("");
  const Json* instructions = reader.Find("instructions");
  SKEIN_ASSIGN_OR_RETURN(
      question->instructions,
      DecisionText(instructions == nullptr ? Json() : *instructions, "instructions"));
  if (type == "choice") {
    question->kind = echo->kind = DecisionKind::kChoice;
    return ReadChoices(object, question, echo);
  }
  if (type == "score") {
    question->kind = echo->kind = DecisionKind::kScore;
    return ReadLevels(object, question, echo);
  }
  question->options = {{"yes", ""}, {"no", ""}};
  return ReadCriteria(object, question);
}

// Finds the option that an example's answer names. `path` is its name in messages.
Result<size_t> AnswerIndex(const Echo& echo, const Json& answer, const std::string& path) {
  const char* allowed = "one of the choices' values";
  if (echo.kind == DecisionKind::kPredicate) {
    if (answer.is_boolean()) return answer.get<bool>() ? size_t{0} : size_t{1};
    allowed = "true or false";
  } else if (echo.kind == DecisionKind::kScore) {
    const auto level = JsonInt(answer);
    if (level && *level >= 0 && *level < static_cast<int64_t>(echo.values.size())) {
      return static_cast<size_t>(*level);
    }
    allowed = "a level's label or its position, from 0 on";
  }
  const auto found = std::ranges::find(echo.values, answer);
  if (found != echo.values.end()) return static_cast<size_t>(found - echo.values.begin());
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} must be {}, got {}", path, allowed, DumpJson(answer)), path);
}

// Reads `answers` of an example: one for each question, in order.
Result<std::vector<size_t>> ExampleAnswers(const std::vector<Echo>& echoes, const Json& answers) {
  if (!answers.is_array() || answers.size() != echoes.size()) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("answers must be an array of {} answers, one for each question", echoes.size()),
        "answers");
  }
  std::vector<size_t> options;
  for (size_t i = 0; i < echoes.size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(const size_t option,
                           AnswerIndex(echoes[i], answers[i], fmt::format("answers[{}]", i)));
    options.push_back(option);
  }
  return options;
}

Json AnswerJson(const Echo& echo, const MethodAnswer& read, bool diagnostics) {
  const DecisionAnswer& answer = read.answer;
  Json json;
  if (echo.kind == DecisionKind::kPredicate) {
    json["type"] = "predicate";
    json["name"] = echo.name;
    json["probability"] = answer.probabilities[0];
  } else {
    const bool choice = echo.kind == DecisionKind::kChoice;
    json["type"] = choice ? "choice" : "score";
    json["name"] = echo.name;
    json[choice ? "choice" : "score"] = choice ? echo.values[answer.mode] : Json(answer.mean);
    json["confidence"] = choice ? ChoiceConfidence(answer) : ScoreConfidence(answer);
    Json probabilities = Json::array();
    for (size_t i = 0; i < echo.values.size(); ++i) {
      Json entry;
      entry["value"] = choice ? echo.values[i] : Json(i);
      if (!choice) entry["label"] = echo.values[i];
      entry["probability"] = answer.probabilities[i];
      probabilities.push_back(std::move(entry));
    }
    json["probabilities"] = std::move(probabilities);
  }
  if (diagnostics) {
    json["diagnostics"] =
        read.by_head ? HeadDiagnosticsJson(read.method) : DiagnosticsJson(answer, read.method);
  }
  return json;
}

Json UsageOf(const ReadUsage& usage) {
  Json json;
  json["input_tokens"] = usage.input_tokens;
  json["input_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  json["input_tokens_details"]["cache_write_tokens"] = 0;
  json["output_tokens"] = 0;
  json["output_tokens_details"]["reasoning_tokens"] = 0;
  json["total_tokens"] = usage.input_tokens;
  return json;
}

Status StartDecisions(const ServerContext& context, const HttpRequest& request,
                      std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  // Clients of OpenRouter send requests in System One's form to a route of this name.
  if (reader.Has("state") && !reader.Has("input")) {
    return StartSystemOne(context, request, std::move(responder));
  }
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindDecisionModel(*context.models, &reader));
  DecisionTask task;
  task.options = ReadDecisionOptions(*model, &reader);
  const Json* questions = Objects(&reader, "questions", 1, kQuestionsMax, "questions");
  if (!reader.status().ok()) return reader.status();
  SKEIN_ASSIGN_OR_RETURN(task.input, DecisionInput(reader.Find("input"), "input"));
  task.input_field = "input";
  std::vector<Echo> echoes;
  for (size_t i = 0; i < questions->size(); ++i) {
    const std::string field = fmt::format("questions[{}]", i);
    DecisionQuestion question;
    SKEIN_RETURN_IF_ERROR(
        Within(field, ReadQuestion((*questions)[i], &question, &echoes.emplace_back())));
    task.questions.push_back(std::move(question));
    task.question_fields.push_back(field);
    const Json& name = echoes.back().name;
    task.question_ids.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  SKEIN_ASSIGN_OR_RETURN(task.examples,
                         ReadExamples(
                             &reader,
                             [](const Json& example) {
                               return DecisionInput(FieldReader(example).Find("input"), "input");
                             },
                             [&](const Json& answers) { return ExampleAnswers(echoes, answers); }));
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_ASSIGN_OR_RETURN(DecisionPlan plan, PlanDecisions(*model, task));
  auto write = [model, echoes = std::move(echoes), diagnostics = task.options.diagnostics,
                read = std::move(plan.answers)](const ReadResults& results) -> Result<Json> {
    const std::vector<MethodAnswer> answers = read(results);
    WarnOfSmallMass(*model, answers);
    Json answer;
    answer["model"] = model->name();
    answer["answers"] = Json::array();
    for (size_t i = 0; i < echoes.size(); ++i) {
      answer["answers"].push_back(AnswerJson(echoes[i], answers[i], diagnostics));
    }
    answer["usage"] = UsageOf(results.usage);
    return answer;
  };
  StartReads(context, model, std::move(responder), begin_us, std::move(plan.requests),
             std::move(write), std::move(plan.charged));
  return Status::Ok();
}

}  // namespace

void AddDecisionsRoute(Router* router) {
  router->AddWork("POST", "/v1/decisions", Starting(&StartDecisions), RouteClass::kDecide);
}

}  // namespace skein
