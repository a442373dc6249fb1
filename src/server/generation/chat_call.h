#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/generation/generation_call.h"
#include "server/json/json.h"
#include "server/router.h"
#include "server/tools/tool_fields.h"

namespace skein {

// A chat that has been read and tokenized. Only its answer's form and its receiver are missing.
struct ChatCall {
  GenerationCall::Spec spec;  // without format and responder
  ToolFields tools;
};

// Reads a body as /v1/chat/completions takes it; the other dialects' requests are turned into such
// bodies. Errors name its fields. A `raw_prompt`, if not null, is the prompt as it stands, instead
// of the rendered messages.
Result<ChatCall> ReadChatCall(const ServerContext& context, const Json& body,
                              const std::string* raw_prompt = nullptr);

void StartChatCall(ChatCall call, std::unique_ptr<AnswerFormat> format,
                   std::shared_ptr<Responder> responder);

// Makes the id of a call of a tool: unique to the answer of that `seed`, the choice and the call.
// Mistral's templates want nine characters.
std::string ToolCallId(uint64_t seed, int32_t choice, int32_t call, ToolStyle style);

}  // namespace skein
