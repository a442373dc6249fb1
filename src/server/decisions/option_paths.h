#pragma once

#include <vector>

#include "base/result.h"
#include "server/decisions/question_reading.h"
#include "skein/request.h"

namespace skein {

// Tokens that spell an option behind a prompt.
using TokenPath = std::vector<TokenId>;

// Reads how likely each option is behind `prompt`: the sum, over its paths, of the product of their
// tokens' probabilities. If a path is the beginning of another option's path, the longer path's
// probability is subtracted from the shorter one's, since that text is the longer option.
//
// The prompt is one row, which gives the probabilities of all first tokens. Each further token at
// an option's end needs another row behind the same prompt. Options that differ in their last token
// alone share that row:
//
//   prompt                          reads  {" very", " good"}
//   prompt + " very"                reads  {" good", " bad"}     "very good", "very bad"
//   prompt + " not" + " at"         reads  {" all"}              "not at all"; this row's
//                                                                prompt gives " at"
//
// `options` [options][spellings]: at least one path of at least one token each, all different.
// `want_mass`: asks for the first row's log-sum-exp even if no other row needs it.
// REQUIRES: at most kMaxLabels first tokens.
QuestionReads ReadPaths(const Request& base, std::vector<TokenId> prompt,
                        const std::vector<std::vector<TokenPath>>& options, bool want_mass);

}  // namespace skein
