#include "bench/quality/quality_methods.h"

#include <algorithm>
#include <utility>

#include "server/decisions/decision_method_names.h"

namespace skein {
namespace {

DecisionMethod Method(Reading reading, PromptForm prompt, bool calibrated, bool permuted) {
  DecisionMethod method;
  method.reading = reading;
  method.prompt = prompt;
  method.calibrated = calibrated;
  method.permuted = permuted;
  return method;
}

std::vector<DecisionMethod> DecisionMethods(bool embeds_only) {
  using enum PromptForm;
  std::vector<DecisionMethod> methods;
  if (embeds_only) {
    for (const PromptForm prompt : {kChat, kQuestion, kCue}) {
      methods.push_back(Method(Reading::kSimilarity, prompt, false, false));
    }
    return methods;
  }
  for (const PromptForm prompt : {kChat, kQuestion}) {
    methods.push_back(Method(Reading::kLetters, prompt, false, false));
    methods.push_back(Method(Reading::kLetters, prompt, false, true));
    methods.push_back(Method(Reading::kLetters, prompt, true, false));
  }
  for (const PromptForm prompt : {kChat, kQuestion, kCue}) {
    methods.push_back(Method(Reading::kWords, prompt, false, false));
    methods.push_back(Method(Reading::kWords, prompt, true, false));
    methods.push_back(Method(Reading::kWords, prompt, false, true));
    methods.push_back(Method(Reading::kWords, prompt, true, true));
  }
  return methods;
}

std::vector<DecisionMethod> RelevanceMethods() {
  return {Method(Reading::kLetters, PromptForm::kChat, false, false),
          Method(Reading::kLetters, PromptForm::kQuestion, false, false),
          Method(Reading::kWords, PromptForm::kChat, false, false),
          Method(Reading::kWords, PromptForm::kQuestion, false, false),
          Method(Reading::kLikelihood, PromptForm::kQuestion, false, false)};
}

}  // namespace

std::string QualityMethod::name() const {
  if (own) return by_head ? "head" : "own";
  return ReadingName(method) + "/" + std::string(NameOf(method.prompt));
}

std::vector<QualityMethod> QualityMethodsFor(const ModelTraits& traits, bool has_chat_template,
                                             QualityType type) {
  std::vector<QualityMethod> methods;
  const bool relevance = type == QualityType::kRelevance;
  if (traits.decision_model) {
    if (relevance) return {};
    QualityMethod head;
    head.own = head.by_head = true;
    return {head};
  }
  if (relevance && (traits.embeds || traits.classifies || traits.qwen3_reranker)) {
    QualityMethod own;
    own.own = true;
    own.probabilities = traits.classifies || traits.qwen3_reranker;
    return {own};
  }
  const bool embeds_only = !traits.generates && traits.embeds;
  for (const DecisionMethod& method :
       relevance ? RelevanceMethods() : DecisionMethods(embeds_only)) {
    if (!has_chat_template && !embeds_only && method.prompt == PromptForm::kChat) continue;
    if (method.permuted && type != QualityType::kChoice) continue;
    methods.push_back({method});
  }
  return methods;
}

Result<MethodFilter> ParseMethodFilter(const std::string& list) {
  MethodFilter filter;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    const size_t slash = std::min(name.find('/'), name.size());
    MethodFilter::Entry entry;
    SKEIN_ASSIGN_OR_RETURN(entry.reading, ParseReading(name.substr(0, slash), "--methods"));
    if (slash < name.size()) {
      SKEIN_ASSIGN_OR_RETURN(entry.prompt, ParsePrompt(name.substr(slash + 1), "--methods"));
    }
    filter.entries.push_back(entry);
  }
  return filter;
}

std::vector<QualityMethod> Filtered(std::vector<QualityMethod> methods,
                                    const MethodFilter& filter) {
  if (filter.entries.empty()) return methods;
  std::erase_if(methods, [&](const QualityMethod& one) {
    return !one.own && std::ranges::none_of(filter.entries, [&](const MethodFilter::Entry& entry) {
      const DecisionMethod& method = one.method;
      return entry.reading == NamedReading{method.reading, method.calibrated, method.permuted} &&
             entry.prompt.value_or(method.prompt) == method.prompt;
    });
  });
  return methods;
}

}  // namespace skein
