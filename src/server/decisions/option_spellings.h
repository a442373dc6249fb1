#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"

namespace skein {

// Without the white space around it: of ASCII, and what is as wide as nothing or as an ideograph in
// Unicode (U+00A0, U+200B, U+3000, U+FEFF).
std::string_view TrimmedOption(std::string_view text);

// The spellings of one option: its text, and the same with a small and a capital first letter.
std::vector<std::string> SpellingsOfText(std::string_view text);

// The spellings of yes and of no. `instructions` may name a pair of another language, or full-width
// letters, as in "Answer with ja or nein": then those count, too.
std::array<std::vector<std::string>, 2> SpellingsOfYesNo(std::string_view instructions);

// kInvalidArgument if an option's text is nothing but white space, or two are the same without it.
// The message begins behind the question's field.
Status CheckOptionTexts(const DecisionQuestion& question);

}  // namespace skein
