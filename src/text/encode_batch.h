#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/threads/thread_team.h"
#include "text/tokenizer.h"

namespace skein {

// Encodes each text as Tokenizer::Encode does, on all threads of the team; ids[i] belongs to
// texts[i]. If several texts fail, the failure of the first of them is returned, and *ids is empty.
// Thread rule: that of the team. The calling thread encodes texts, too.
Status EncodeBatch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                   bool add_special_tokens, ThreadTeam* team,
                   std::vector<std::vector<TokenId>>* ids);

}  // namespace skein
