#include "server/scheduling_fields.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>

namespace skein {
namespace {
constexpr double kSloMsMax = 86'400'000;  // a day
}  // namespace

void ReadScheduling(FieldReader* reader, Request* request) {
  request->priority =
      static_cast<int32_t>(reader
                               ->Int("priority", std::numeric_limits<int32_t>::min(),
                                     std::numeric_limits<int32_t>::max())
                               .value_or(0));
  request->user = reader->String("user").value_or("");
  if (const auto salt = reader->String("cache_salt"); salt && !salt->empty()) {
    // 0 is the pool of those without a salt.
    request->cache_salt = std::max<uint64_t>(1, XXH3_64bits(salt->data(), salt->size()));
  }
  if (const auto ms = reader->NumberAbove("slo_ttft_ms", 0, kSloMsMax)) {
    request->slo_ttft_us = static_cast<TimeUs>(*ms * 1000);
  }
  if (const auto ms = reader->NumberAbove("slo_tpot_ms", 0, kSloMsMax)) {
    request->slo_tpot_us = static_cast<TimeUs>(*ms * 1000);
  }
}

}  // namespace skein
