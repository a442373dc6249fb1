#include "server/early_check.h"

#include <algorithm>
#include <cstdint>

namespace skein {
namespace {

// The most tokens of a prompt that is made from a body of this length. It is an estimate: a token
// has a byte of text or more, but a normalizer may spell a character out, and a template adds text.
// It errs only for a prompt that is still longer, fills the context up to one token, and asks for
// more: that request may be refused for the wait of the other class.
int64_t MaxPromptLen(size_t body_bytes) {
  constexpr int64_t kTokensPerByte = 2;
  constexpr int64_t kTemplateTokens = 1024;
  return kTokensPerByte * static_cast<int64_t>(body_bytes) + kTemplateTokens;
}

}  // namespace

Status CheckGenerationWait(const ServerContext& context, const ModelEntry& model,
                           const Request& request) {
  return model.engine->CheckWait(request, MaxPromptLen(context.body_bytes));
}

Status CheckReadWait(const ModelEntry& model, const Request& base) {
  Request read = base;
  read.output = LabelSpec{};
  return model.engine->CheckWait(read, model.max_model_len);
}

}  // namespace skein
