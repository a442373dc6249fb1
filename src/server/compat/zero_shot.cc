#include "server/compat/zero_shot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/decisions/decision_reads.h"
#include "server/early_check.h"
#include "server/json/field_reader.h"
#include "server/json/scheduling_fields.h"
#include "server/reads/pooling_call.h"
#include "server/reads/read_inputs.h"
#include "server/reads/read_session.h"

namespace skein {
namespace {

constexpr size_t kLabelsMax = kQuestionsMax;  // with multi_label each label is a question
constexpr char kPlace[] = "{}";               // stands for the label in a template
constexpr char kDefaultTemplate[] = "This example is {}.";

struct ZeroShotFields {
  std::string text;
  std::vector<std::string> labels;
  bool multi_label = false;
  std::string hypothesis_template;  // empty: not given
};

Result<ZeroShotFields> ReadZeroShotFields(const Json& body) {
  FieldReader reader(body);
  ZeroShotFields fields;
  const auto text = reader.String("inputs");
  if (reader.status().ok() && !text) reader.Refuse("inputs", "inputs must be given");
  const Json* object = reader.Object("parameters");
  SKEIN_RETURN_IF_ERROR(reader.status());
  fields.text = *text;
  FieldReader parameters(*object);
  fields.labels = parameters.Strings("candidate_labels", kLabelsMax);
  fields.multi_label = parameters.Bool("multi_label").value_or(false);
  fields.hypothesis_template = parameters.String("hypothesis_template").value_or("");
  SKEIN_RETURN_IF_ERROR(parameters.status());
  const auto refuse = [](const std::string& name, const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument, fmt::format("parameters.{} must {}", name, allowed),
                  "parameters." + name);
  };
  if (fields.labels.empty()) {
    return refuse("candidate_labels", fmt::format("hold 1 to {} labels", kLabelsMax));
  }
  for (size_t i = 0; i < fields.labels.size(); ++i) {
    const auto end = fields.labels.begin() + static_cast<std::ptrdiff_t>(i);
    if (fields.labels[i].empty() || std::find(fields.labels.begin(), end, *end) != end) {
      return refuse("candidate_labels", "hold labels that differ and are not empty");
    }
  }
  const std::string& form = fields.hypothesis_template;
  if (!form.empty() && form.find(kPlace) == std::string::npos) {
    return refuse("hypothesis_template", "hold {} in the place of the label");
  }
  // A single label cannot be compared with others.
  fields.multi_label = fields.multi_label || fields.labels.size() == 1;
  return fields;
}

std::string HypothesisOf(const ZeroShotFields& fields, const std::string& label) {
  std::string text =
      fields.hypothesis_template.empty() ? kDefaultTemplate : fields.hypothesis_template;
  return text.replace(text.find(kPlace), std::string_view(kPlace).size(), label);
}

Json RankedLabels(const std::vector<std::string>& labels, const std::vector<double>& scores) {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  Json list = Json::array();
  for (const size_t i : order) list.push_back({{"label", labels[i]}, {"score", scores[i]}});
  return list;
}

// The class of entailment and the class of contradiction, which is the first or the last, as in the
// pipelines of transformers.
struct EntailmentClasses {
  size_t entailment = 0;
  size_t contradiction = 0;
};

std::optional<EntailmentClasses> FindEntailment(const ModelTraits& traits) {
  if (!traits.classifies || !traits.encodes_pairs || traits.class_labels.size() < 2) return {};
  for (size_t i = 0; i < traits.class_labels.size(); ++i) {
    std::string name = traits.class_labels[i];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!name.starts_with("entail")) continue;
    return EntailmentClasses{i, i == 0 ? traits.class_labels.size() - 1 : 0};
  }
  return {};
}

// The probabilities of the labels, from the classification head's outputs for their hypotheses.
std::vector<double> EntailmentScores(const std::vector<ReadValues>& reads,
                                     const EntailmentClasses& classes, bool multi_label) {
  std::vector<double> scores;
  double most = -std::numeric_limits<double>::infinity();
  for (const ReadValues& read : reads) {
    const double logit = static_cast<double>(read.values[classes.entailment]);
    const double against = static_cast<double>(read.values[classes.contradiction]);
    scores.push_back(multi_label ? 1 / (1 + std::exp(against - logit)) : logit);
    most = std::max(most, logit);
  }
  if (multi_label) return scores;
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
  return scores;
}

Status StartEntailment(const ServerContext& context, const ModelEntry& model, const Json& body,
                       ZeroShotFields fields, const EntailmentClasses& classes,
                       std::shared_ptr<Responder> responder) {
  FieldReader reader(body);
  Request base;
  ReadScheduling(&reader, &base);
  base.output = ClassifySpec{};
  const InputOptions options = ReadInputOptions(&reader, model);
  SKEIN_RETURN_IF_ERROR(reader.status());
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "parameters.candidate_labels", fields.labels.size()));
  SKEIN_RETURN_IF_ERROR(CheckReadWait(model, base));
  const TimeUs begin_us = MonotonicClock().NowUs();
  std::vector<Request> requests;
  for (const std::string& label : fields.labels) {
    const std::string hypothesis = HypothesisOf(fields, label);
    SKEIN_ASSIGN_OR_RETURN(ReadInput input,
                           EncodeText(model, options, {fields.text, hypothesis}, "inputs"));
    Request& request = requests.emplace_back(base);
    request.prompt = std::move(input.ids);
    request.second_segment_begin = input.second_segment_begin;
  }
  StartReads(context, &model, std::move(responder), begin_us, std::move(requests),
             [fields = std::move(fields), classes](const ReadResults& results) -> Result<Json> {
               return RankedLabels(fields.labels,
                                   EntailmentScores(results.reads, classes, fields.multi_label));
             });
  return Status::Ok();
}

DecisionTask TaskOf(const ZeroShotFields& fields) {
  DecisionTask task;
  task.input = fields.text;
  task.input_field = "inputs";
  const std::string& form = fields.hypothesis_template;
  if (fields.multi_label) {
    for (size_t i = 0; i < fields.labels.size(); ++i) {
      DecisionQuestion& question = task.questions.emplace_back();
      question.instructions =
          form.empty() ? fmt::format("Does the label \"{}\" fit the text?", fields.labels[i])
                       : fmt::format("Is this statement about the text true? {}",
                                     HypothesisOf(fields, fields.labels[i]));
      question.options = {{"yes", ""}, {"no", ""}};
      task.question_fields.push_back(fmt::format("parameters.candidate_labels[{}]", i));
    }
    return task;
  }
  DecisionQuestion& question = task.questions.emplace_back();
  question.kind = DecisionKind::kChoice;
  question.instructions =
      form.empty() ? std::string("Which label fits the text best?")
                   : fmt::format("Which label makes this statement about the text true? {}",
                                 HypothesisOf(fields, "..."));
  for (const std::string& label : fields.labels) question.options.push_back({label, ""});
  task.question_fields.emplace_back("parameters.candidate_labels");
  return task;
}

Status StartLabelDecisions(const ServerContext& context, const ModelEntry& model, const Json& body,
                           ZeroShotFields fields, std::shared_ptr<Responder> responder) {
  FieldReader reader(body);
  DecisionTask task = TaskOf(fields);
  task.options = ReadDecisionOptions(model, &reader);
  task.options.diagnostics = false;
  SKEIN_RETURN_IF_ERROR(reader.status());
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_ASSIGN_OR_RETURN(DecisionPlan plan, PlanDecisions(model, task));
  auto write = [fields = std::move(fields),
                read = std::move(plan.answers)](const ReadResults& results) -> Result<Json> {
    const std::vector<MethodAnswer> answers = read(results);
    if (!fields.multi_label) {
      return RankedLabels(fields.labels, answers.front().answer.probabilities);
    }
    std::vector<double> scores;
    for (const MethodAnswer& answer : answers) scores.push_back(answer.answer.probabilities[0]);
    return RankedLabels(fields.labels, scores);
  };
  StartReads(context, &model, std::move(responder), begin_us, std::move(plan.requests),
             std::move(write), std::move(plan.charged));
  return Status::Ok();
}

}  // namespace

Status StartZeroShot(const ServerContext& context, const ModelEntry& model, const Json& body,
                     std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(ZeroShotFields fields, ReadZeroShotFields(body));
  if (const auto classes = FindEntailment(model.traits)) {
    return StartEntailment(context, model, body, std::move(fields), *classes, std::move(responder));
  }
  const ModelEntry& decider = context.models->ForDecisions(model);
  if (decider.traits.generates || decider.traits.decision_model) {
    return StartLabelDecisions(context, decider, body, std::move(fields), std::move(responder));
  }
  return Status(StatusCode::kUnsupported,
                fmt::format("the model {} scores no labels of a request: zero-shot classification "
                            "needs a chat model, a decision model, or a classifier of pairs with "
                            "a class named entailment",
                            model.name()),
                "model");
}

}  // namespace skein
