#include "server/json/scheduling_fields.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

// Converts to microseconds, at least one: a deadline above 0 stays above 0.
TimeUs Microseconds(double ms) {
  return std::max<TimeUs>(1, static_cast<TimeUs>(std::floor(ms * 1000)));
}

}  // namespace

SchedulingDefaults ReadSchedulingDefaults(FieldReader* reader) {
  SchedulingDefaults fields;
  if (const auto priority = reader->Int("priority", std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max())) {
    fields.priority = static_cast<int32_t>(*priority);
  }
  fields.slo_ttft_ms = reader->NumberAbove("slo_ttft_ms", 0, kSloMsMax);
  fields.slo_tpot_ms = reader->NumberAbove("slo_tpot_ms", 0, kSloMsMax);
  return fields;
}

void ReadScheduling(FieldReader* reader, Request* request) {
  const SchedulingDefaults fields = ReadSchedulingDefaults(reader);
  request->priority = fields.priority.value_or(0);
  request->user = reader->String("user").value_or("");
  if (request->user.size() > kUserBytesMax) {
    reader->Refuse("user", fmt::format("user must have at most {} bytes, got {}", kUserBytesMax,
                                       request->user.size()));
  }
  if (const auto salt = reader->String("cache_salt"); salt && !salt->empty()) {
    // The salt 0 means a request without a salt.
    request->cache_salt = std::max<uint64_t>(1, XXH3_64bits(salt->data(), salt->size()));
  }
  if (const auto timeout_ms = reader->NumberAbove("timeout_ms", 0, kSloMsMax)) {
    request->timeout_us = Microseconds(*timeout_ms);
  }
  if (fields.slo_ttft_ms) request->slo_ttft_us = Microseconds(*fields.slo_ttft_ms);
  if (fields.slo_tpot_ms) request->slo_tpot_us = Microseconds(*fields.slo_tpot_ms);
}

void AddSchedulingDefaults(const SchedulingDefaults* first, const SchedulingDefaults* second,
                           Json* body) {
  const auto add = [&](const char* name, auto member) {
    const auto found = body->find(name);
    if (found != body->end() && !found->is_null()) return;
    for (const SchedulingDefaults* defaults : {first, second}) {
      if (defaults == nullptr || !(defaults->*member)) continue;
      (*body)[name] = *(defaults->*member);
      return;
    }
  };
  add("slo_ttft_ms", &SchedulingDefaults::slo_ttft_ms);
  add("slo_tpot_ms", &SchedulingDefaults::slo_tpot_ms);
  add("priority", &SchedulingDefaults::priority);
}

}  // namespace skein
