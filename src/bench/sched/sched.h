#pragma once

#include <nlohmann/json.hpp>

namespace skein {

// Requests in groups. The requests of a group have the same beginning, and a suffix each.
struct TreeBenchOptions {
  int32_t num_requests = 5000;
  int32_t num_tokens = 5000;  // of one request, including its suffix
  int32_t num_groups = 5;
  int32_t num_suffix_tokens = 20;
  int32_t batch_size = 500;    // active requests in the steady state
  int32_t num_turns = 20'000;  // requests that arrive and finish during the measurement
};

// Measures the mean costs of the chunked hash tree's operations with chunks of a KV block. Members:
// requests, tokens, groups, suffix_tokens, batch, chunk_tokens, nodes; hash_ns (one pass over a
// request's tokens; the prefix cache needs nearly all of these hashes anyway), insert_ns (of the
// hashes), add_ns, finish_ns, find_best_ns. Operations of one kind are timed together while
// requests come and go, in the thread's CPU time.
nlohmann::ordered_json BenchTree(const TreeBenchOptions& options);

// The same for chunks of 1 to 256 tokens with their own hash vectors, in both constructions:
// [{construction, chunk_tokens, hash_ns, insert_ns, add_ns, finish_ns, find_best_ns}].
nlohmann::ordered_json BenchChunkSizes(const TreeBenchOptions& options);

// Measures the cost of a scheduling round that replaces one request of the batch while
// `num_waiting` others wait: [{policy, prefix_tokens, waiting, us_per_round}], with prefixes of 1K
// to 20K tokens. `prefix-homogeneous` hashes and inserts a new request, finishes another one, and
// finds and adds the best one. `prefix-homogeneous-radix` makes the same choice over a radix tree
// of the batch (bench/sched/radix_candidate.h). `lpm` and `dfs-weight` order the queue over a radix
// tree of the cached prefixes (bench/sched/radix_orders.h).
nlohmann::ordered_json BenchOverhead(int32_t num_waiting, int32_t num_groups);

}  // namespace skein
