#pragma once

#include "server/json/field_reader.h"
#include "server/scheduling_defaults.h"
#include "skein/request.h"

namespace skein {

inline constexpr double kSloMsMax = 86'400'000;  // a day
inline constexpr size_t kUserBytesMax = 1024;

// Reads the fields of every route with work: priority, user, cache_salt, slo_ttft_ms, slo_tpot_ms,
// timeout_ms.
// Errors go to reader->status().
void ReadScheduling(FieldReader* reader, Request* request);

// Reads those of the fields that may have defaults.
SchedulingDefaults ReadSchedulingDefaults(FieldReader* reader);

// Adds the missing ones of these fields to the body: from `first` if it has them, else from
// `second`. Either may be null.
void AddSchedulingDefaults(const SchedulingDefaults* first, const SchedulingDefaults* second,
                           Json* body);

}  // namespace skein
