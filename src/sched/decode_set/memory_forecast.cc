#include "sched/decode_set/memory_forecast.h"

#include <algorithm>

namespace skein {

double PeakTokens(double used, std::span<GrowingRequest> requests) {
  std::ranges::sort(requests, {}, &GrowingRequest::left);
  double now = used, peak = used, passed = 0;
  auto num_growing = static_cast<double>(requests.size());
  // The sum falls only when a request ends.
  for (const GrowingRequest& request : requests) {
    now += num_growing * (request.left - passed);
    peak = std::max(peak, now);
    passed = request.left;
    now -= request.own + request.left;
    --num_growing;
  }
  return peak;
}

}  // namespace skein
