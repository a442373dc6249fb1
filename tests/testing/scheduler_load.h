#pragma once

#include <cstdint>

namespace skein::testing {

// Events of a load's scheduler.
struct LoadCounts {
  int64_t preemptions = 0;    // recomputations because blocks ran out
  int64_t shared_tokens = 0;  // taken from a shared prefix
  int64_t prefix_waits = 0;
  int64_t suspended = 0, dropped = 0;  // steps
  int64_t saved = 0, loaded = 0;       // blocks copied to the host, and back
};

enum class Faults {
  kNone,
  kInjected,  // the device is lost with the step that runs, a step finds no memory, the clock jumps
};

// kOn: the configuration caches prefixes and keeps evicted blocks on the host, in a random number
// of slots.
enum class HostTierOfLoad { kOff, kOn };

// Runs the scheduler against FakeExecutor, step by step on one thread: a random configuration and
// `num_requests` random requests, which arrive, share prefixes, run out of blocks and are cancelled
// at random points. Expects (gtest) that every structure agrees after each event, that every
// request has the answer it has alone, and that all blocks are free at the end. Everything follows
// from `seed`: it replays a run.
LoadCounts RunRandomLoad(uint64_t seed, int32_t num_requests, Faults faults = Faults::kNone,
                         HostTierOfLoad host_tier = HostTierOfLoad::kOff);

}  // namespace skein::testing
