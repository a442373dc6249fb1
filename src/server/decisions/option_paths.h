#pragma once

#include <vector>

#include "base/result.h"
#include "server/decisions/question_reading.h"
#include "skein/request.h"

namespace skein {

// Tokens that spell an option behind a prompt.
using TokenPath = std::vector<TokenId>;

// Reads how likely each option is behind `prompt`: the sum over its paths of the product of their
// tokens' probabilities. If a path begins another option's path, the longer one's probability is
// subtracted from the shorter one's: that text is the longer option.
//
// The prompt is one row, which reads all first tokens; each further token that an option ends with
// costs a row behind the same prompt, shared by the options that differ in that token alone:
//
//   prompt                          reads  {" very", " good"}
//   prompt + " very"                reads  {" good", " bad"}     "very good", "very bad"
//   prompt + " not" + " at"         reads  {" all"}              "not at all"; " at" by the
//   prompt's
//                                                                log-probabilities
//
// `options` [options][spellings]: at least one path of at least one token each, all different.
// `want_mass`: the first row's log-sum-exp is wanted even where no other row needs it.
// REQUIRES: at most kMaxLabels first tokens.
QuestionReads ReadPaths(const Request& base, std::vector<TokenId> prompt,
                        const std::vector<std::vector<TokenPath>>& options, bool want_mass);

}  // namespace skein
