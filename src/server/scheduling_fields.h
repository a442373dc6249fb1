#pragma once

#include "server/field_reader.h"
#include "skein/request.h"

namespace skein {

// The fields that every working route takes: priority, user, cache_salt, slo_ttft_ms, slo_tpot_ms.
// Mistakes end up in reader->status().
void ReadScheduling(FieldReader* reader, Request* request);

}  // namespace skein
