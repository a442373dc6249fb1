#include "server/decisions/heads/clef_answer.h"

#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace skein {
namespace {

// Rounds as Python's round(value, 4).
double TenThousandths(double value) {
  return std::strtod(fmt::format("{:.4f}", value).c_str(), nullptr);
}

}  // namespace

Json ClefAnswerJson(const DecisionQuestion& question, const MethodAnswer& read) {
  const DecisionAnswer& answer = read.answer;
  if (question.kind == DecisionKind::kPredicate) {
    return {{"type", "noul"}, {"noul", TenThousandths(answer.probabilities[0])}};
  }
  const bool choice = question.kind == DecisionKind::kChoice;
  Json probabilities = Json::object();
  Json legend = Json::object();
  for (size_t i = 0; i < question.options.size(); ++i) {
    const DecisionOption& option = question.options[i];
    const std::string level = std::to_string(i);
    probabilities[choice ? option.name : level] = TenThousandths(answer.probabilities[i]);
    legend[level] = option.json.empty() ? Json(option.description) : Json::parse(option.json);
  }
  Json json = {{"type", choice ? "choice" : "score"}};
  json[choice ? "choice" : "score"] =
      choice ? Json(question.options[answer.mode].name) : Json(TenThousandths(answer.mean));
  json["confidence"] = TenThousandths(answer.probabilities[answer.mode]);
  if (!choice) json["legend"] = std::move(legend);
  json["probabilities"] = std::move(probabilities);
  return json;
}

}  // namespace skein
