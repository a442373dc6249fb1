#include "base/clock.h"

#include <chrono>

#include "base/check.h"

namespace skein {

TimeUs MonotonicClock::NowUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void VirtualClock::AdvanceTo(TimeUs now_us) {
  SKEIN_CHECK(now_us >= now_us_);
  now_us_ = now_us;
}

}  // namespace skein
