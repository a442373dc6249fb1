#include "text/encode_batch.h"

namespace skein {

Status EncodeBatch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                   bool add_special_tokens, ThreadTeam* team,
                   std::vector<std::vector<TokenId>>* ids) {
  const size_t count = texts.size();
  ids->assign(count, {});
  std::vector<Status> statuses(count);
  team->Run(0, static_cast<int>(count), [&](int i, int) {
    statuses[i] = tokenizer.Encode(texts[i], add_special_tokens, &(*ids)[i]);
  });
  for (const Status& status : statuses) {
    if (status.ok()) continue;
    ids->clear();
    return status;
  }
  return Status::Ok();
}

}  // namespace skein
