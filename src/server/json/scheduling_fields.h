#pragma once

#include "server/json/field_reader.h"
#include "server/scheduling_defaults.h"
#include "skein/request.h"

namespace skein {

inline constexpr double kSloMsMax = 86'400'000;  // a day

// The fields that every working route takes: priority, user, cache_salt, slo_ttft_ms, slo_tpot_ms.
// Mistakes end up in reader->status().
void ReadScheduling(FieldReader* reader, Request* request);

// Of those, the ones that may have defaults.
SchedulingDefaults ReadSchedulingDefaults(FieldReader* reader);

// Gives the body those of them that it does not have: of `first` where that has them, else of
// `second`; either may be null.
void AddSchedulingDefaults(const SchedulingDefaults* first, const SchedulingDefaults* second,
                           Json* body);

}  // namespace skein
