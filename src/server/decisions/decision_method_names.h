#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/json/json.h"
#include "skein/choice_names.h"
#include "skein/decision_method.h"

namespace skein {

// A profile or a request may not ask for a higher temperature.
inline constexpr double kTemperatureMax = 100;

template <>
inline constexpr auto kChoiceNames<Reading> = std::to_array<ChoiceName<Reading>>({
    {"letters", Reading::kLetters},
    {"words", Reading::kWords},
    {"similarity", Reading::kSimilarity},
    {"likelihood", Reading::kLikelihood},
});
template <>
inline constexpr auto kChoiceNames<PromptForm> = std::to_array<ChoiceName<PromptForm>>({
    {"chat", PromptForm::kChat},
    {"question", PromptForm::kQuestion},
    {"cue", PromptForm::kCue},
});

// The names that ReadingOf takes, for messages.
inline constexpr char kReadingsAllowed[] =
    "letters, words, similarity or likelihood, with +calibrated or +permuted behind it";

// "words", "letters+permuted", "words+calibrated+permuted" ...
std::string ReadingName(const DecisionMethod& method);
// The reading of this name; nothing if there is none. `calibrated` alone means words+calibrated,
// `permuted` alone letters+permuted.
std::optional<NamedReading> ReadingOf(std::string_view name);
void SetReading(const NamedReading& reading, DecisionMethod* method);

// The same of the member `field` of a JSON object. kInvalidArgument, with the param `field`, lists
// the allowed names.
Result<NamedReading> ParseReading(std::string_view name, const std::string& field);
Result<PromptForm> ParsePrompt(std::string_view name, const std::string& field);

// The contents of a skein.decisions.json:
//   {"version": 1, "predicate": {"reading", "prompt", "temperature", "offset"}, "choice": ...,
//    "score": ..., "relevance": ...}
// Choices and scores have no offset.
// A type that is absent keeps what `base` says. kInvalidArgument names the member.
Result<DecisionProfile> ParseDecisionProfile(const Json& json, const DecisionProfile& base);
Json DecisionProfileJson(const DecisionProfile& profile);

}  // namespace skein
