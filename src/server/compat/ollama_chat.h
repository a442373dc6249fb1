#pragma once

#include "server/router.h"

namespace skein {

// The two routes of Ollama that generate: /api/chat and /api/generate.
Handler OllamaChat();
Handler OllamaGenerate();

// {"error": message}
HttpResponse OllamaFailure(const Status& status);

// Drops the tag ":latest" from the body's model name unless a served model's name has it.
void DropLatestTag(const ModelRegistry& models, Json* body);

// The time now as Ollama writes it (RFC 3339, UTC).
std::string Rfc3339Now();

}  // namespace skein
