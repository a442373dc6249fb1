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

// A chat that has been read and tokenized. Only the format and the responder of its answer are
// missing.
struct ChatCall {
  GenerationCall::Spec spec;  // without format and responder
  ToolFields tools;
};

// Whether a chat is answered, or only its prompt is made.
enum class ChatUse { kAnswer, kPrompt };

// Reads a body in the form of /v1/chat/completions; requests of other dialects are turned into this
// form first. Errors name the body's fields. If `raw_prompt` is not null, it is the prompt, and no
// messages are rendered. A chat that is to be answered fails with kResourceExhausted, before its
// prompt is made, if it would wait too long.
Result<ChatCall> ReadChatCall(const ServerContext& context, const Json& body, ChatUse use,
                              const std::string* raw_prompt = nullptr);

void StartChatCall(ChatCall call, std::unique_ptr<AnswerFormat> format,
                   std::shared_ptr<Responder> responder);

// Makes the id of a tool call from the answer's seed, the choice and the call's number, so that it
// is unique. Mistral's templates need ids of nine characters.
std::string ToolCallId(uint64_t seed, int32_t choice, int32_t call, ToolStyle style);

}  // namespace skein
