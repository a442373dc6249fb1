#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/json/json.h"
#include "skein/decision_method.h"

namespace skein {

// A profile or a request may not ask for a higher temperature.
inline constexpr double kTemperatureMax = 100;

// "words", "letters+permuted", "words+calibrated+permuted" ...
std::string ReadingName(const DecisionMethod& method);
std::string_view PromptName(PromptForm prompt);

// Sets the method's reading by its name. `calibrated` alone means words+calibrated, `permuted`
// alone letters+permuted. kInvalidArgument, with the param `field`, lists what is allowed.
Status SetReading(std::string_view name, const std::string& field, DecisionMethod* method);
Status SetPrompt(std::string_view name, const std::string& field, DecisionMethod* method);

// The contents of a skein.decisions.json:
//   {"version": 1, "predicate": {"reading", "prompt", "temperature", "offset"}, "choice": ...,
//    "score": ..., "relevance": ...}
// Choices and scores have no offset.
// A type that is absent keeps what `base` says. kInvalidArgument names the member.
Result<DecisionProfile> ParseDecisionProfile(const Json& json, const DecisionProfile& base);
Json DecisionProfileJson(const DecisionProfile& profile);

}  // namespace skein
