#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "server/api/systemone_request.h"
#include "server/decisions/decision_answer.h"
#include "server/decisions/decision_reads.h"
#include "server/decisions/decision_requests.h"
#include "server/decisions/heads/head_reading.h"
#include "server/decisions/heads/head_sequence.h"
#include "server/decisions/heads/kev_answer.h"
#include "server/decisions/heads/kev_sequence.h"
#include "server/generation/generation_call.h"
#include "server/json/python_json.h"
#include "server/json/request_body.h"
#include "server/reads/read_session.h"
#include "server/routes.h"

namespace skein {
namespace {

// The form of the texts of a question that a model reads: strings alone, JSON as lines of text
// (Kev), or JSON with sorted keys (Clef).
enum class TextForm { kStrings, kLines, kSortedJson };

TextForm TextFormOf(const ModelEntry& model) {
  const auto& head = model.traits.decision_model;
  if (head && head->clef) return TextForm::kSortedJson;
  return head && head->kev ? TextForm::kLines : TextForm::kStrings;
}

// A text that is not a string. REQUIRES: the form takes such texts.
std::string TextOf(TextForm form, const Json& value) {
  return form == TextForm::kLines ? KevText(value) : DumpSortedJson(value);
}

// Reads a description: a string or null, or any JSON that the model's form takes.
Status ReadDescription(TextForm form, const std::string& field, const Json& value,
                       DecisionOption* option) {
  if (form == TextForm::kSortedJson) option->json = DumpSortedJson(value);
  if (value.is_null()) return Status::Ok();
  if (value.is_string()) {
    option->description = value.get<std::string>();
    return Status::Ok();
  }
  if (form != TextForm::kStrings) {
    option->description = TextOf(form, value);
    return Status::Ok();
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} must be a string or null, got {}", field, DumpJson(value)), field);
}

Status ReadNoul(TextForm form, FieldReader* reader, DecisionQuestion* question) {
  question->options = {{"yes", ""}, {"no", ""}};
  const Json* criteria = reader->Object("criteria");
  if (criteria == nullptr) return reader->status();
  for (const auto& [key, value] : criteria->items()) {
    const bool yes = key == "true" || key == "yes";
    if (!yes && key != "false" && key != "no") {
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format("criteria of a noul may have the members true and false, not {}", key),
          "criteria");
    }
    SKEIN_RETURN_IF_ERROR(
        ReadDescription(form, "criteria." + key, value, &question->options[yes ? 0 : 1]));
  }
  return Status::Ok();
}

// Reads the names of a choice's options, which must all differ.
Status ReadNames(const Json& names, DecisionQuestion* question) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string field = fmt::format("criteria[{}]", i);
    const std::string name = names[i].is_string() ? names[i].get<std::string>() : "";
    const bool taken = std::ranges::find(question->options, name, &DecisionOption::name) !=
                       question->options.end();
    if (name.empty() || taken) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} must be a string that is not empty and differs from those "
                                "before it, got {}",
                                field, DumpJson(names[i])),
                    field);
    }
    question->options.push_back({name, ""});
  }
  return Status::Ok();
}

Status ReadChoice(TextForm form, FieldReader* reader, DecisionQuestion* question) {
  question->kind = DecisionKind::kChoice;
  const Json* criteria = reader->Find("criteria");
  if (criteria == nullptr || !criteria->is_structured() || criteria->empty() ||
      criteria->size() > kChoicesMax) {
    reader->Refuse("criteria", fmt::format("criteria of a choice must be an object of 1 to {} "
                                           "options, each with its description or null, or an "
                                           "array of their names",
                                           kChoicesMax));
    return reader->status();
  }
  if (criteria->is_array()) return ReadNames(*criteria, question);
  for (const auto& [key, value] : criteria->items()) {
    if (key.empty()) {
      return Status(StatusCode::kInvalidArgument, "criteria must not have an empty name",
                    "criteria");
    }
    question->options.push_back({key, ""});
    SKEIN_RETURN_IF_ERROR(
        ReadDescription(form, "criteria." + key, value, &question->options.back()));
  }
  return Status::Ok();
}

Status ReadScore(TextForm form, FieldReader* reader, DecisionQuestion* question) {
  question->kind = DecisionKind::kScore;
  const Json* criteria = reader->Find("criteria");
  if (criteria == nullptr || !criteria->is_array() || criteria->empty() ||
      criteria->size() > kLevelsMax) {
    reader->Refuse("criteria", fmt::format("criteria of a score must be an array of 1 to {} "
                                           "descriptions, lowest level first",
                                           kLevelsMax));
    return reader->status();
  }
  for (size_t i = 0; i < criteria->size(); ++i) {
    const std::string field = fmt::format("criteria[{}]", i);
    question->options.push_back({"", ""});
    SKEIN_RETURN_IF_ERROR(ReadDescription(form, field, (*criteria)[i], &question->options.back()));
  }
  return Status::Ok();
}

// Reads the instructions of a question. A model that reads the question's name, too, needs none.
void ReadInstructions(TextForm form, FieldReader* reader, DecisionQuestion* question) {
  const Json* instructions = reader->Find("instructions");
  const bool any = form != TextForm::kStrings && instructions != nullptr;
  if (any && !instructions->is_string() && !instructions->is_null()) {
    question->instructions = TextOf(form, *instructions);
  } else {
    question->instructions = reader->String("instructions").value_or("");
  }
  if (question->instructions.empty() && form != TextForm::kSortedJson) {
    reader->Refuse("instructions", "instructions must be a string that is not empty");
  }
}

// Reads one member of `questions`. Errors name fields relative to the member.
Result<DecisionQuestion> ReadQuestion(TextForm form, const Json& object) {
  if (!object.is_object())
    return Status(StatusCode::kInvalidArgument, "type must be given", "type");
  FieldReader reader(object);
  const std::string type = reader.String("type").value_or("");
  DecisionQuestion question;
  ReadInstructions(form, &reader, &question);
  question.cue = reader.String("cue").value_or("");
  for (const char* name : {"labels", "option_order"}) {
    if (reader.Has(name)) {
      reader.Refuse(name, fmt::format("{} of a question is not supported", name),
                    StatusCode::kUnsupported);
    }
  }
  SKEIN_RETURN_IF_ERROR(reader.status());
  if (type == "noul") {
    SKEIN_RETURN_IF_ERROR(ReadNoul(form, &reader, &question));
  } else if (type == "choice") {
    SKEIN_RETURN_IF_ERROR(ReadChoice(form, &reader, &question));
  } else if (type == "score") {
    SKEIN_RETURN_IF_ERROR(ReadScore(form, &reader, &question));
  } else {
    reader.RefuseValue("type", "\"noul\", \"choice\" or \"score\"", Json(type));
    return reader.status();
  }
  return question;
}

Result<std::string> ReadState(const ModelEntry& model, const Json* state) {
  if (state == nullptr || !(state->is_string() || state->is_structured()) || state->empty() ||
      *state == "") {
    return Status(StatusCode::kInvalidArgument,
                  "state must be a string, an object or an array that is not empty", "state");
  }
  if (state->is_string()) return state->get<std::string>();
  if (!model.traits.decision_model) return DumpJson(*state);
  const TextForm form = TextFormOf(model);
  return form == TextForm::kStrings ? DumpPythonJson(*state) : TextOf(form, *state);
}

// Reads `answers` of an example: an object from each question's id to its answer. An answer is true
// or false, an option's name, or the position of a level.
Result<std::vector<size_t>> ExampleAnswers(const std::vector<DecisionQuestion>& questions,
                                           const std::vector<std::string>& ids,
                                           const Json& answers) {
  std::vector<size_t> options;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Json answer =
        answers.is_object() && answers.contains(ids[i]) ? answers.at(ids[i]) : Json();
    const auto& known = questions[i].options;
    std::optional<size_t> option;
    if (questions[i].kind == DecisionKind::kPredicate) {
      if (answer.is_boolean()) option = answer.get<bool>() ? 0 : 1;
    } else if (questions[i].kind == DecisionKind::kScore) {
      const auto level = JsonInt(answer);
      if (level && *level >= 0 && *level < static_cast<int64_t>(known.size())) {
        option = static_cast<size_t>(*level);
      }
    } else if (answer.is_string()) {
      const auto found = std::ranges::find(known, answer.get<std::string>(), &DecisionOption::name);
      if (found != known.end()) option = static_cast<size_t>(found - known.begin());
    }
    if (!option) {
      const std::string path = "answers." + ids[i];
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} must be true or false of a noul, an option of a choice, a "
                                "level's position of a score; got {}",
                                path, DumpJson(answer)),
                    path);
    }
    options.push_back(*option);
  }
  return options;
}

Json AnswerJson(const DecisionQuestion& question, const MethodAnswer& read, bool diagnostics) {
  const DecisionAnswer& answer = read.answer;
  Json json;
  if (question.kind == DecisionKind::kPredicate) {
    json["type"] = "noul";
    json["noul"] = answer.probabilities[0];
  } else {
    const bool choice = question.kind == DecisionKind::kChoice;
    json["type"] = choice ? "choice" : "score";
    json[choice ? "choice" : "score"] =
        choice ? Json(question.options[answer.mode].name) : Json(answer.mean);
    Json legend = Json::object();
    Json probabilities = Json::object();
    for (size_t i = 0; i < question.options.size(); ++i) {
      const std::string level = std::to_string(i);
      probabilities[choice ? question.options[i].name : level] = answer.probabilities[i];
      legend[level] = question.options[i].description;
    }
    if (!choice) json["legend"] = std::move(legend);
    json["probabilities"] = std::move(probabilities);
    json["confidence"] = choice ? ChoiceConfidence(answer) : ScoreConfidence(answer);
  }
  if (diagnostics) json["diagnostics"] = DiagnosticsJson(answer, read.method);
  return json;
}

// Reads a threshold: a number from 0 to 1, null for no threshold, or an object with the number as
// its member `threshold`.
Result<std::optional<double>> ReadThreshold(const Json& value, const std::string& field) {
  const Json& plain = value.is_object() ? value.value("threshold", Json()) : value;
  if (plain.is_null()) return std::optional<double>();
  if (plain.is_number() && plain >= 0 && plain <= 1) return std::optional(plain.get<double>());
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("{} must be a number from 0 to 1 or null, got {}", field, DumpJson(value)),
      field);
}

const char* TypeNameOf(DecisionKind kind) {
  return kind == DecisionKind::kChoice ? "choice" : kind == DecisionKind::kScore ? "score" : "noul";
}

// Reads `abstain`, the probability below which an answer is marked as abstained: one threshold for
// all questions, or an object with a threshold for a question's id, else for its type.
Result<std::vector<std::optional<double>>> ReadAbstain(
    const Json* abstain, const std::vector<std::string>& ids,
    const std::vector<DecisionQuestion>& questions) {
  std::vector<std::optional<double>> thresholds(ids.size());
  if (abstain == nullptr || abstain->is_null()) return thresholds;
  if (!abstain->is_object()) {
    SKEIN_ASSIGN_OR_RETURN(const auto threshold, ReadThreshold(*abstain, "abstain"));
    std::ranges::fill(thresholds, threshold);
    return thresholds;
  }
  for (const auto& [key, value] : abstain->items()) {
    SKEIN_ASSIGN_OR_RETURN(const auto threshold, ReadThreshold(value, "abstain." + key));
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool by_type = key == TypeNameOf(questions[i].kind) && !abstain->contains(ids[i]);
      if (key == ids[i] || by_type) thresholds[i] = threshold;
    }
  }
  return thresholds;
}

// Reads Laya's `min_confidence`, the probability below which an answer is marked: one threshold for
// all questions, or an object with a threshold for each type and number of options ("choice:3-5")
// and a `default`.
Result<std::vector<std::optional<double>>> ReadMinConfidence(
    const Json* wanted, const std::vector<DecisionQuestion>& questions) {
  constexpr char kField[] = "min_confidence", kDefault[] = "default";
  std::vector<std::optional<double>> thresholds(questions.size());
  if (wanted == nullptr || wanted->is_null()) return thresholds;
  if (!wanted->is_object()) {
    SKEIN_ASSIGN_OR_RETURN(const auto threshold, ReadThreshold(*wanted, kField));
    std::ranges::fill(thresholds, threshold);
    return thresholds;
  }
  for (size_t i = 0; i < questions.size(); ++i) {
    const std::string bucket = OptionBucket(questions[i]);
    const std::string key = wanted->contains(bucket) ? bucket : kDefault;
    SKEIN_ASSIGN_OR_RETURN(thresholds[i], ReadThreshold(wanted->value(key, Json(0.0)),
                                                        std::string(kField) + "." + key));
  }
  return thresholds;
}

Json UsageJson(const ReadUsage& usage) {
  Json json;
  json["input_tokens"] = usage.input_tokens;
  json["input_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  json["output_tokens"] = 0;
  return json;
}

// The parts of an answer besides the values that were read from the model.
struct Form {
  // One answer in the model's form. With a threshold, the answer says whether its probability lies
  // below the threshold.
  Json OneAnswer(size_t i, const MethodAnswer& read) const {
    const auto& head = model->traits.decision_model;
    Json json = head ? HeadAnswerJson(*head, questions[i], read, diagnostics)
                     : AnswerJson(questions[i], read, diagnostics);
    if (thresholds[i]) {
      json["abstained"] = *std::ranges::max_element(read.answer.probabilities) < *thresholds[i];
    }
    if (min_confidence[i]) {
      const double most = *std::ranges::max_element(read.answer.probabilities);
      const bool low = json.value("answer_confidence", most) < *min_confidence[i];
      if (low) json["low_confidence"] = true;
      json["abstention"] = low ? "abstained" : "passed";
      json["abstention_threshold"] = *min_confidence[i];
    }
    return json;
  }

  Json Write(const std::vector<MethodAnswer>& answers, const ReadUsage& usage) const {
    WarnOfSmallMass(*model, answers);
    Json json;
    if (!request_id.empty()) json["id"] = request_id;
    json["model"] = model->name();
    json["answers"] = Json::object();
    for (size_t i = 0; i < ids.size(); ++i) json["answers"][ids[i]] = OneAnswer(i, answers[i]);
    json["usage"] = head_usage ? HeadUsageJson(*model->traits.decision_model, *head_usage,
                                               usage.input_tokens, ids)
                               : UsageJson(usage);
    if (head_usage && model->traits.decision_model->kev) {
      json["usage"]["output_tokens"] = OutputTokens(answers);
    }
    return json;
  }

  // The number of tokens of the answers, without the members that only Skein adds.
  int64_t OutputTokens(const std::vector<MethodAnswer>& answers) const {
    Json plain = Json::object();
    for (size_t i = 0; i < ids.size(); ++i) plain[ids[i]] = KevAnswerJson(questions[i], answers[i]);
    return KevOutputTokens(*model->tokenizer, plain);
  }

  const ModelEntry* model = nullptr;
  std::vector<std::string> ids;
  std::vector<DecisionQuestion> questions;
  std::vector<std::optional<double>> thresholds;      // [questions]: `abstain`
  std::vector<std::optional<double>> min_confidence;  // [questions]
  bool diagnostics = false;
  std::optional<HeadUsage> head_usage;  // of a decision model
  std::string request_id = {};          // empty: the answer has none
};

// Refuses inputs other than text, which the model would have to see or hear.
Status CheckTextAlone(FieldReader* reader) {
  for (const char* name : {"images", "files", "videos", "content"}) {
    const Json* value = reader->Find(name);
    if (value == nullptr || value->empty()) continue;
    reader->Refuse(name, fmt::format("{} is not supported: a state is text or JSON", name),
                   StatusCode::kUnsupported);
  }
  return reader->status();
}

}  // namespace

Status StartSystemOne(const ServerContext& context, const HttpRequest& request,
                      std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindDecisionModel(*context.models, &reader));
  DecisionTask task;
  task.options = ReadDecisionOptions(*model, &reader);
  // Decision models answer in the form of their own server unless the client asks for diagnostics.
  if (model->traits.decision_model) task.options.diagnostics &= reader.Has("diagnostics");
  task.instructions = reader.String("instructions").value_or("");
  const Json* questions = reader.Object("questions");
  if (questions == nullptr || questions->empty() || questions->size() > kQuestionsMax) {
    reader.Refuse("questions",
                  fmt::format("questions must be an object of 1 to {} questions", kQuestionsMax));
  }
  SKEIN_RETURN_IF_ERROR(CheckTextAlone(&reader));
  const Json* state = reader.Find("state");
  SKEIN_ASSIGN_OR_RETURN(task.input, ReadState(*model, state));
  task.input_field = "state";
  task.keeps_end = state->is_array();  // an array is a conversation: its last turns are kept
  std::vector<std::string> ids;
  const auto& head = model->traits.decision_model;
  for (const auto& [id, value] : questions->items()) {
    Result<DecisionQuestion> question = ReadQuestion(TextFormOf(*model), value);
    task.question_fields.push_back("questions." + id);
    if (!question.ok()) return Within(task.question_fields.back(), question.status());
    task.questions.push_back(std::move(question).value());
    ids.push_back(id);
  }
  task.question_ids = ids;
  SKEIN_ASSIGN_OR_RETURN(
      task.examples,
      ReadExamples(
          &reader,
          [model](const Json& example) {
            FieldReader fields(example);
            const char* field = fields.Has("state") ? "state" : "input";
            return ReadState(*model, fields.Find(field));
          },
          [&](const Json& answers) { return ExampleAnswers(task.questions, ids, answers); }));
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_ASSIGN_OR_RETURN(DecisionPlan plan, PlanDecisions(*model, task));
  SKEIN_ASSIGN_OR_RETURN(auto thresholds, ReadAbstain(reader.Find("abstain"), ids, task.questions));
  SKEIN_ASSIGN_OR_RETURN(auto min_confidence,
                         ReadMinConfidence(reader.Find("min_confidence"), task.questions));
  Form form = {model,
               std::move(ids),
               std::move(task.questions),
               std::move(thresholds),
               std::move(min_confidence),
               task.options.diagnostics,
               std::move(plan.head_usage)};
  if (head && head->sysone) form.request_id = request.request_id;
  auto write = [form = std::move(form),
                read = std::move(plan.answers)](const ReadResults& results) -> Result<Json> {
    return form.Write(read(results), results.usage);
  };
  StartReads(context, model, std::move(responder), begin_us, std::move(plan.requests),
             std::move(write), std::move(plan.charged));
  return Status::Ok();
}

void AddSystemOneRoute(Router* router) {
  for (const char* path : {"/v1/systemone", "/api/alpha/decisions"}) {
    router->AddWork("POST", path, Starting(&StartSystemOne), RouteClass::kDecide);
  }
}

}  // namespace skein
