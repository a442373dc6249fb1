#pragma once

#include "server/json/json.h"
#include "server/tools/tool_fields.h"

namespace skein {

// Writes tools into the texts of `*messages`, for a template that cannot show tools: the tools and
// how to call them, if `fields` is active; calls of earlier turns, in the form of `style`; the
// results of these calls, as a user's message. The messages have been checked: each has a role and
// a text.
void WriteTools(const ToolFields& fields, ToolStyle style, Json* messages);

}  // namespace skein
