#include "server/early_check.h"

#include <algorithm>
#include <cstdint>

namespace skein {
namespace {

// The most tokens of a prompt that is made from a body of this length. It is a bound for the
// tokenizers and templates that are served: a token has a byte of text, which a normalizer may
// spell out, and a template has its own text. With a longer prompt, a request that leaves room for
// one token only could be refused although it is of the other class.
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
