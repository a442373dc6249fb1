#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/thread_team.h"
#include "text/tokenizer.h"

namespace skein {

// Encodes each of `texts` as Tokenizer::Encode does, shared out over the team's threads; ids[i] is
// that of texts[i]. Of several failures the first text's is returned, and *ids is then empty.
// Thread rule: the team's; the caller works along.
Status EncodeBatch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                   bool add_special_tokens, ThreadTeam* team,
                   std::vector<std::vector<TokenId>>* ids);

}  // namespace skein
