#include "server/decisions/heads/kev_answer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/decisions/decision_answer.h"
#include "server/json/python_json.h"

namespace skein {
namespace {

// Rounds as Python's round(value, 2).
double Hundredths(double value) {
  return std::strtod(fmt::format("{:.2f}", value).c_str(), nullptr);
}

double KevConfidence(DecisionKind kind, const DecisionAnswer& answer) {
  const std::vector<double>& p = answer.probabilities;
  if (p.size() == 1) return 1;
  if (kind == DecisionKind::kChoice) {
    const double even = 1 / static_cast<double>(p.size());
    return (p[answer.mode] - even) / (1 - even);
  }
  double distance = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    distance += p[i] * std::abs(static_cast<double>(i) - static_cast<double>(answer.mode));
  }
  return 1 - distance / static_cast<double>(p.size() - 1);
}

}  // namespace

Json KevAnswerJson(const DecisionQuestion& question, const MethodAnswer& read) {
  const DecisionAnswer& answer = read.answer;
  if (question.kind == DecisionKind::kPredicate) {
    return {{"type", "noul"}, {"noul", Hundredths(answer.probabilities[0])}};
  }
  const double confidence = Hundredths(KevConfidence(question.kind, answer));
  Json probabilities = Json::object();
  Json legend = Json::object();
  for (size_t i = 0; i < question.options.size(); ++i) {
    const DecisionOption& option = question.options[i];
    const bool choice = question.kind == DecisionKind::kChoice;
    probabilities[choice ? option.name : std::to_string(i)] = Hundredths(answer.probabilities[i]);
    legend[std::to_string(i)] = option.description;
  }
  if (question.kind == DecisionKind::kChoice) {
    return {{"type", "choice"},
            {"choice", question.options[answer.mode].name},
            {"confidence", confidence},
            {"probabilities", std::move(probabilities)}};
  }
  return {{"type", "score"},
          {"score", Hundredths(answer.mean)},
          {"legend", std::move(legend)},
          {"probabilities", std::move(probabilities)},
          {"confidence", confidence}};
}

int64_t KevOutputTokens(const Tokenizer& tokenizer, const Json& answers) {
  std::vector<TokenId> ids;
  const Status status =
      tokenizer.Encode(DumpPythonJson(answers, PythonJsonChars::kAscii), false, &ids);
  return status.ok() ? std::ssize(ids) : 0;
}

}  // namespace skein
