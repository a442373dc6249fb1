#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"

namespace skein {

// The text without the white space around it: that of ASCII, and U+00A0, U+200B, U+3000 and U+FEFF.
std::string_view TrimmedOption(std::string_view text);

// The spellings of one option: its text, and its text with a small or a capital first letter.
std::vector<std::string> SpellingsOfText(std::string_view text);

// The spellings of yes and of no. `instructions` may name the words of another language or
// full-width letters, as in "Answer with ja or nein"; such words then count, too.
std::array<std::vector<std::string>, 2> SpellingsOfYesNo(std::string_view instructions);

// kInvalidArgument if an option's text is only white space, or if two texts are equal without white
// space around them. The caller puts the name of the question's field before the message.
Status CheckOptionTexts(const DecisionQuestion& question);

}  // namespace skein
