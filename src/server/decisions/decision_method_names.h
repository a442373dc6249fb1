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

// The highest temperature that a profile or a request may ask for.
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

// The names that ReadingOf accepts, for messages.
inline constexpr char kReadingsAllowed[] =
    "letters, words, similarity or likelihood, with +calibrated or +permuted behind it";

// The name of a method's reading: "words", "letters+permuted", "words+calibrated+permuted" ...
std::string ReadingName(const DecisionMethod& method);
// The reading of this name; nullopt if there is none. "calibrated" alone means words+calibrated,
// "permuted" alone means letters+permuted.
std::optional<NamedReading> ReadingOf(std::string_view name);
void SetReading(const NamedReading& reading, DecisionMethod* method);

// ReadingOf for the member `field` of a JSON object. The error kInvalidArgument, with the param
// `field`, lists the allowed names.
Result<NamedReading> ParseReading(std::string_view name, const std::string& field);
Result<PromptForm> ParsePrompt(std::string_view name, const std::string& field);

// Reads the contents of a skein.decisions.json:
//   {"version": 1, "predicate": {"reading", "prompt", "temperature", "offset"}, "choice": ...,
//    "score": ..., "relevance": ...}
// Choices and scores have no offset.
// An absent type keeps its entry of `base`. kInvalidArgument names the member.
Result<DecisionProfile> ParseDecisionProfile(const Json& json, const DecisionProfile& base);
Json DecisionProfileJson(const DecisionProfile& profile);

}  // namespace skein
