#pragma once

#include "skein/request.h"

namespace skein {

// The engine's only source of time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeUs NowUs() const = 0;
};

// The monotonic time of the machine, in microseconds since an arbitrary start.
class MonotonicClock final : public Clock {
 public:
  TimeUs NowUs() const override;
};

// A clock that moves only on request, for tests and simulation. One thread only.
class VirtualClock final : public Clock {
 public:
  TimeUs NowUs() const override { return now_us_; }
  void AdvanceTo(TimeUs now_us);

 private:
  TimeUs now_us_ = 0;
};

}  // namespace skein
