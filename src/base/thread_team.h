#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"

namespace skein {

// Returns `threads`, or for 0 the number of processors that the calling thread may run on.
int ThreadsOrAll(int threads);

// A fixed set of threads that works through lists of tickets (docs/ARCHITECTURE.md, "Task"). The
// caller of Run is thread 0, the leader. The others spin briefly and then sleep, so an idle team
// uses no processor time. All threads have the same floating-point mode: denormals flushed to zero
// on input and output, round to nearest.
// Thread rule: one caller of Run at a time.
class ThreadTeam {
 public:
  using TicketFn = std::function<void(int ticket, int thread)>;

  explicit ThreadTeam(int num_threads);  // >= 1, the caller included
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Binds every thread of the team to its own processor among those of the calling thread: the
  // workers now, the leader when it calls PinLeader. kInvalidArgument if there are fewer processors
  // than threads; kUnsupported if the system refuses.
  [[nodiscard]] Status Pin();
  // Binds the calling thread, which becomes the leader, if Pin was called. A second call is cheap.
  void PinLeader();

  // Calls fn(ticket, thread) once for each ticket of [first, end). Free threads claim tickets in
  // ascending order. Once `stop` (may be null) reads true, no further ticket is issued. Returns
  // when all issued tickets are finished, with the first ticket not issued: `end` if all ran.
  int Run(int first, int end, const TicketFn& fn, const std::atomic<bool>* stop = nullptr);

  // Makes about one in eight later lists with a `stop` end before a random ticket, as if `stop` had
  // read true there. For tests and debug builds: they then meet every point of suspension.
  void StopAtRandom(uint64_t seed);

 private:
  struct State;
  int num_threads_;
  std::unique_ptr<State> state_;
};

}  // namespace skein
