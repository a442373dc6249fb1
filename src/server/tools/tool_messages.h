#pragma once

#include "server/json/json.h"
#include "server/tools/tool_fields.h"

namespace skein {

// Writes what a template without tools would drop into the texts of `*messages`: the tools and how
// to call them, if `fields` is active; calls of earlier turns, as `style` writes them; their
// results, as a user's message. The messages have been checked: each has a role and a text.
void WriteTools(const ToolFields& fields, ToolStyle style, Json* messages);

}  // namespace skein
