#include "base/threads/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fp_mode.h"
#include "base/memory_reserve.h"
#include "base/random.h"

namespace skein {

// The processors on which a thread may run, and the index of their node.
struct ThreadPlace {
  cpu_set_t processors;
  int32_t node;
};

namespace {

// Longer than the gap between two operators of one step, and short enough to waste little time.
constexpr auto kSpinTime = std::chrono::microseconds(40);
constexpr int kPausesPerClockRead = 32;
constexpr int kListsPerRandomStop = 8;

template <typename Predicate>
bool SpinUntil(const Predicate& done) {
  const auto give_up = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  return done();
}

// A place for each thread: a processor, or all processors of a node. Each thread goes to the node
// that then has the fewest threads for each of its processors. REQUIRES: with `own_processor`,
// there are enough processors.
std::vector<ThreadPlace> PlacesOn(const std::vector<NumaNode>& nodes, int num_threads,
                                  bool own_processor) {
  std::vector<ThreadPlace> places;
  std::vector<int64_t> taken(nodes.size());
  const auto is_emptier = [&](size_t a, size_t b) {
    return (taken[a] + 1) * std::ssize(nodes[b].processors) <
           (taken[b] + 1) * std::ssize(nodes[a].processors);
  };
  for (int thread = 0; thread < num_threads; ++thread) {
    size_t best = 0;
    for (size_t i = 1; i < nodes.size(); ++i) best = is_emptier(i, best) ? i : best;
    const NumaNode& node = nodes[best];
    const NumaNode one{node.id, {node.processors[taken[best] % std::ssize(node.processors)]}};
    places.push_back({ProcessorsOf(own_processor ? one : node), static_cast<int32_t>(best)});
    ++taken[best];
  }
  return places;
}

// Returns 0 or the system's error number.
int BindTo(const cpu_set_t& processors, pthread_t thread) {
  return pthread_setaffinity_np(thread, sizeof(processors), &processors);
}

Status CannotBind(const char* option, const std::string& because) {
  return {StatusCode::kUnsupported, "threads cannot be bound to processors here: " + because,
          option};
}

}  // namespace

// The gate admits workers to the current list of tickets. It is one word:
//
//   63                16    15    14          0
//   [ number of the list | open | threads inside ]
//
// The caller of Run writes the list, then opens the gate. A worker enters by adding 1 to the word
// while the gate is open. The caller shuts the gate when no ticket is left, and waits until all
// workers are out. So a worker that wakes late finds the gate shut and causes no delay, and no
// worker sees the list change.
struct ThreadTeam::State {
  static constexpr uint64_t kOpen = uint64_t{1} << 15;
  static constexpr uint64_t kInside = kOpen - 1;
  static constexpr int kListShift = 16;

  alignas(64) std::atomic<uint64_t> gate{0};
  std::atomic<bool> quit{false};
  std::atomic<int> num_sleepers{0};
  alignas(64) std::atomic<int> next{0};
  // The threads on fast processors that work on the list. Written only if there are speeds.
  std::atomic<int> num_fast{0};

  // The list of tickets. It is written only while the gate is shut and no worker is inside.
  alignas(64) int end = 0;
  const TicketFn* fn = nullptr;
  const std::atomic<bool>* stop = nullptr;

  std::mutex mutex;  // for sleeping only
  std::condition_variable wake;
  std::vector<std::thread> workers;

  std::mutex failure_mutex;
  std::exception_ptr failure;  // the first of the list's tickets; guarded by failure_mutex

  // A place for each thread; empty unless the team is bound. Written only while the gate is shut.
  std::vector<ThreadPlace> places;
  std::thread::id leader;  // the thread bound to the first place

  std::optional<Random> random_stops;

  // By processor, as shares of the fastest's; empty if all are equal. Written as the places are.
  std::vector<float> speeds;

  // How many times as long as on the fastest processor a ticket takes on the calling thread's.
  float Slowness() const {
    if (speeds.empty()) return 1;
    const int processor = sched_getcpu();
    const bool is_known = processor >= 0 && static_cast<size_t>(processor) < speeds.size();
    return is_known ? 1 / speeds[processor] : 1;
  }

  // The next ticket for a thread; `end` or more if there is none.
  int Claim(float slowness) {
    if (slowness <= 1) return next.fetch_add(1, std::memory_order_relaxed);
    int ticket = next.load(std::memory_order_relaxed);
    do {
      const auto left = static_cast<float>(end - ticket);
      // While this thread would finish one ticket, each fast one finishes the ticket that it has
      // and slowness - 1 others.
      const auto num_others = static_cast<float>(num_fast.load(std::memory_order_relaxed));
      if (left <= num_others * (slowness - 1)) return end;
    } while (!next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed));
    return ticket;
  }

  // Takes tickets until there are none for this thread. After a ticket that failed none is issued.
  void Work(int thread, float slowness) {
    ThisNode() = places.empty() ? 0 : places[thread].node;
    try {
      while (stop == nullptr || !stop->load(std::memory_order_relaxed)) {
        const int ticket = Claim(slowness);
        if (ticket >= end) return;
        (*fn)(ticket, thread);
      }
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(failure_mutex);
      if (failure == nullptr) failure = std::current_exception();
      next.store(end, std::memory_order_relaxed);
    }
  }

  void WorkAsWorker(int thread) {
    const float slowness = Slowness();
    const bool fast = !speeds.empty() && slowness <= 1;
    if (fast) num_fast.fetch_add(1, std::memory_order_relaxed);
    Work(thread, slowness);
    if (fast) num_fast.fetch_sub(1, std::memory_order_relaxed);
  }

  // Whether a list newer than `seen` is open, or the team ends.
  bool HasNews(uint64_t seen) const {
    const uint64_t now = gate.load(std::memory_order_seq_cst);
    return quit.load(std::memory_order_relaxed) || ((now & kOpen) && (now >> kListShift) != seen);
  }

  void WaitForNews(uint64_t seen) {
    if (SpinUntil([&] { return HasNews(seen); })) return;
    std::unique_lock lock(mutex);
    // The increment and Open() are sequentially consistent: either Open sees this sleeper, or
    // HasNews sees the open gate.
    num_sleepers.fetch_add(1, std::memory_order_seq_cst);
    wake.wait(lock, [&] { return HasNews(seen); });
    num_sleepers.fetch_sub(1, std::memory_order_relaxed);
  }

  void RunWorker(int thread) {
    const ScopedFpMode fp_mode;
    const ReserveScope no_failed_allocation;
    uint64_t seen = 0;
    for (;;) {
      WaitForNews(seen);
      if (quit.load(std::memory_order_relaxed)) return;
      uint64_t now = gate.load(std::memory_order_relaxed);
      if (!(now & kOpen) || (now >> kListShift) == seen) continue;
      if (!gate.compare_exchange_strong(now, now + 1, std::memory_order_acquire)) continue;
      seen = now >> kListShift;
      WorkAsWorker(thread);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  void End() {
    {
      const std::lock_guard lock(mutex);
      quit.store(true);
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  // `option`: that which asks for it, for errors.
  Status Bind(std::vector<ThreadPlace> new_places, const char* option) {
    for (size_t i = 0; i < workers.size(); ++i) {
      const int error = BindTo(new_places[i + 1].processors, workers[i].native_handle());
      if (error != 0) return CannotBind(option, std::strerror(error));
    }
    places = std::move(new_places);
    return Status::Ok();
  }

  void WakeSleepers() {
    if (num_sleepers.load(std::memory_order_seq_cst) == 0) return;
    { const std::lock_guard lock(mutex); }
    wake.notify_all();
  }

  void Open() {
    const uint64_t list = (gate.load(std::memory_order_relaxed) >> kListShift) + 1;
    gate.store((list << kListShift) | kOpen, std::memory_order_seq_cst);
    WakeSleepers();
  }

  void ShutAndWait() {
    gate.fetch_and(~kOpen, std::memory_order_relaxed);
    const auto empty = [&] { return (gate.load(std::memory_order_acquire) & kInside) == 0; };
    // A worker that is still inside may have lost its processor: offers it this one.
    while (!SpinUntil(empty)) std::this_thread::yield();
  }
};

ThreadTeam::ThreadTeam(int num_threads)
    : num_threads_(num_threads), state_(std::make_unique<State>()) {
  SKEIN_CHECK(num_threads >= 1 && static_cast<uint64_t>(num_threads) < State::kInside);
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      state_->workers.emplace_back([state = state_.get(), thread] { state->RunWorker(thread); });
    }
  } catch (const std::exception&) {
    state_->End();  // those that have started
    throw;
  }
}

ThreadTeam::~ThreadTeam() { state_->End(); }

int ThreadsOrAll(int threads) {
  if (threads > 0) return threads;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // > CPU_SETSIZE
}

Status ThreadTeam::Pin(const std::vector<NumaNode>& nodes) {
  int num_processors = 0;
  for (const NumaNode& node : nodes) num_processors += static_cast<int>(node.processors.size());
  if (num_processors == 0) return CannotBind("pin_threads", "their list is not to be had");
  if (num_processors < num_threads_) {
    return {StatusCode::kInvalidArgument,
            "pin_threads: " + std::to_string(num_threads_) +
                " threads cannot each have one of the " + std::to_string(num_processors) +
                " processors that this process may run on",
            "pin_threads"};
  }
  return state_->Bind(PlacesOn(nodes, num_threads_, /*own_processor=*/true), "pin_threads");
}

Status ThreadTeam::BindToNodes(const std::vector<NumaNode>& nodes) {
  return state_->Bind(PlacesOn(nodes, num_threads_, /*own_processor=*/false), "numa");
}

void ThreadTeam::PinLeader() {
  if (state_->places.empty() || state_->leader == std::this_thread::get_id()) return;
  // If the process has lost the processor since then, the call fails, and the leader keeps its
  // allowed processors.
  BindTo(state_->places[0].processors, pthread_self());
  state_->leader = std::this_thread::get_id();
}

void ThreadTeam::SetSpeeds(std::vector<float> speeds) { state_->speeds = std::move(speeds); }

void ThreadTeam::StopAtRandom(uint64_t seed) { state_->random_stops.emplace(seed); }

int ThreadTeam::Run(int first, int end, const TicketFn& fn, const std::atomic<bool>* stop) {
  SKEIN_CHECK(first <= end);
  if (stop != nullptr && first < end && state_->random_stops &&
      state_->random_stops->OneIn(kListsPerRandomStop)) {
    end = static_cast<int>(state_->random_stops->Between(first, end - 1));
  }
  const ScopedFpMode fp_mode;
  state_->next.store(first, std::memory_order_relaxed);
  state_->end = end;
  state_->fn = &fn;
  state_->stop = stop;
  const bool alone = num_threads_ == 1 || end - first <= 1;
  if (!state_->speeds.empty()) {  // the leader counts before a worker enters
    state_->num_fast.store(state_->Slowness() <= 1 ? 1 : 0, std::memory_order_relaxed);
  }
  if (!alone) state_->Open();
  state_->Work(/*thread=*/0, /*slowness=*/1);
  if (!alone) state_->ShutAndWait();
  if (state_->failure != nullptr) {  // no other thread is inside
    std::rethrow_exception(std::exchange(state_->failure, nullptr));
  }
  return std::min(state_->next.load(std::memory_order_relaxed), end);
}

}  // namespace skein
