#pragma once

#include "server/json/field_reader.h"
#include "server/scheduling_defaults.h"
#include "skein/request.h"

namespace skein {

inline constexpr double kSloMsMax = 86'400'000;  // a day
inline constexpr size_t kUserBytesMax = 1024;

// Reads the scheduling fields of every route that runs on the engine: priority, user, cache_salt,
// slo_ttft_ms, slo_tpot_ms, timeout_ms. Errors go to reader->status().
void ReadScheduling(FieldReader* reader, Request* request);

// Reads the scheduling fields that may have defaults.
SchedulingDefaults ReadSchedulingDefaults(FieldReader* reader);

// Adds missing scheduling fields to the body: from `first` if it has them, otherwise from `second`.
// Each may be null.
void AddSchedulingDefaults(const SchedulingDefaults* first, const SchedulingDefaults* second,
                           Json* body);

}  // namespace skein
