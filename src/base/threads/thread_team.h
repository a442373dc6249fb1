#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/threads/numa.h"

namespace skein {

// Returns `threads`. If it is 0, returns the number of processors on which the calling thread may
// run.
int ThreadsOrAll(int threads);

// A fixed set of threads that works through lists of tickets (docs/ARCHITECTURE.md, "Task"). The
// caller of Run is thread 0 of the team, its leader; the other threads are workers. Workers without
// a list spin briefly and then sleep, so an idle team uses no processor time. All threads have the
// same floating-point mode: denormals flushed to zero on input and output, round to nearest. Thread
// rule: one caller of Run at a time.
class ThreadTeam {
 public:
  using TicketFn = std::function<void(int ticket, int thread)>;

  explicit ThreadTeam(int num_threads);  // >= 1, including the caller
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Binds every thread of the team to a processor of its own. Each node gets threads in proportion
  // to its processors. Workers are bound now; the leader is bound when it calls PinLeader. Fails
  // with kInvalidArgument if there are fewer processors than threads, and with kUnsupported if the
  // system refuses.
  [[nodiscard]] Status Pin(const std::vector<NumaNode>& nodes);
  // Binds the threads to nodes in the same way, each to all processors of its node. From now on,
  // ThisNode() is the index of a thread's node in `nodes` while it works on a ticket.
  [[nodiscard]] Status BindToNodes(const std::vector<NumaNode>& nodes);
  // If the team is bound, binds the calling thread, which becomes the leader. A second call costs
  // little.
  void PinLeader();

  // Says how fast processors are (ProcessorSpeeds). A worker on a slow one then leaves the last
  // tickets of a list to threads on fast ones, if they finish all of them before it would finish
  // one. The leader leaves none. REQUIRES: Run is not running.
  void SetSpeeds(std::vector<float> speeds);

  // Calls fn(ticket, thread) once for each ticket of [first, end). Free threads claim tickets in
  // ascending order. Once `stop` (may be null) reads true, no further ticket is issued. Returns
  // when all issued tickets are finished, with the first ticket not issued: `end` if all ran. If a
  // ticket finds no memory (std::bad_alloc), no further one is issued, and Run throws that in the
  // end; the work of the list is then in pieces.
  int Run(int first, int end, const TicketFn& fn, const std::atomic<bool>* stop = nullptr);

  // From now on, ends about one in eight lists with a `stop` before a random ticket, as if `stop`
  // had read true there. For tests and debug builds, so that they stop at every point of
  // suspension.
  void StopAtRandom(uint64_t seed);

 private:
  struct State;
  int num_threads_;
  std::unique_ptr<State> state_;
};

}  // namespace skein
