#pragma once

#include <cstddef>

namespace skein {

// Asked by a long computation, such as the encoding of a long text, between slices of its work.
class WorkPause {
 public:
  virtual ~WorkPause() = default;
  // Whether the computation should go on; once false, always false. May run other work first. Runs
  // on the thread of the computation, which holds no lock.
  virtual bool GoOn() = 0;
};

// The pause that the thread asks; null: none. For the functions below.
extern constinit thread_local WorkPause* current_pause;

// While it lives, its thread's computations ask `pause`; of nested scopes the innermost counts.
class PauseScope {
 public:
  explicit PauseScope(WorkPause* pause);  // null: they are not interrupted
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

  WorkPause* outer() const { return outer_; }  // of the scope around this one; may be null

 private:
  WorkPause* const outer_;
};

// Asks the thread's pause. True if there is none.
inline bool MayGoOn() { return current_pause == nullptr || current_pause->GoOn(); }

// Counts the progress of one loop, so that it asks once for each slice. A loop shorter than a slice
// never asks.
class SliceMeter {
 public:
  // About a millisecond of encoding; ten with offsets.
  static constexpr size_t kSliceBytes = size_t{16} << 10;

  // `done`: the bytes, or steps of similar cost, behind the loop. False: it must end.
  bool GoOn(size_t done) { return done < next_ || Ask(done); }

 private:
  bool Ask(size_t done) {
    next_ = done + kSliceBytes;
    return MayGoOn();
  }

  size_t next_ = kSliceBytes;
};

}  // namespace skein
