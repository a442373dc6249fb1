#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"

namespace skein {

// `threads`; or where that is 0 one for each processor that the calling thread may run on.
int ThreadsOrAll(int threads);

// A fixed set of threads that works through lists of tickets (docs/ARCHITECTURE.md, "Task"). The
// caller of Run is thread 0, the leader; the others wait, spinning briefly and then sleeping, so an
// idle team uses no processor time. All threads run with the same floating-point control register:
// denormals flushed to zero on input and output, round to nearest.
// Thread rule: one caller of Run at a time.
class ThreadTeam {
 public:
  using TicketFn = std::function<void(int ticket, int thread)>;

  explicit ThreadTeam(int num_threads);  // >= 1, the caller included
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Binds every thread of the team to a processor of its own, of those the calling thread may run
  // on: the workers now, the leader when it calls PinLeader. Fails with kInvalidArgument where
  // there are fewer processors than threads, kUnsupported where the system refuses.
  [[nodiscard]] Status Pin();
  // Binds the calling thread, which leads from now on, where Pin has been called; cheap the second
  // time.
  void PinLeader();

  // Calls fn(ticket, thread) once for each ticket of [first, end), claimed in ascending order by
  // whichever thread is free. Once `stop` (may be null) reads true, no further ticket is issued.
  // Returns, when all issued tickets are finished, the first ticket not issued: `end` if all ran.
  int Run(int first, int end, const TicketFn& fn, const std::atomic<bool>* stop = nullptr);

  // From now on one in about eight lists that have a `stop` ends before a random ticket, as if that
  // had read true there: for tests and debug builds, so that whatever can stop does.
  void StopAtRandom(uint64_t seed);

 private:
  struct State;
  int num_threads_;
  std::unique_ptr<State> state_;
};

}  // namespace skein
