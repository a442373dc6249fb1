#pragma once

#include <nlohmann/json.hpp>

namespace skein {

// Requests in groups that share their beginning, each with a suffix of its own.
struct TreeBenchOptions {
  int32_t num_requests = 5000;
  int32_t num_tokens = 5000;  // of one request, its suffix included
  int32_t num_groups = 5;
  int32_t num_suffix_tokens = 20;
  int32_t batch_size = 500;    // active requests in the steady state
  int32_t num_turns = 20'000;  // requests that come and go while it is measured
};

// The mean costs of the chunked hash tree's operations at chunks of a KV block. Members: requests,
// tokens, groups, suffix_tokens, batch, chunk_tokens, nodes; hash_ns (one pass over a request's
// tokens, nearly all of which the prefix cache needs anyway), insert_ns (of the hashes), add_ns,
// finish_ns, find_best_ns. Operations are timed in runs of one kind while requests come and go, by
// the thread's CPU time.
nlohmann::ordered_json BenchTree(const TreeBenchOptions& options);

// The same for chunks of 1 to 256 tokens that compute hash vectors of their own, in both
// constructions: [{construction, chunk_tokens, hash_ns, insert_ns, add_ns, finish_ns,
// find_best_ns}].
nlohmann::ordered_json BenchChunkSizes(const TreeBenchOptions& options);

// The cost of a scheduling round that replaces one request of the batch while `waiting` others
// wait:
// [{policy, prefix_tokens, waiting, us_per_round}], prefixes of 1K to 20K tokens.
// `prefix-homogeneous` hashes and inserts the new request, finishes one, finds the best and adds
// it; `prefix-homogeneous-radix` makes that choice over a radix tree of the batch
// (bench/sched/radix_candidate.h); `lpm` and `dfs-weight` order the queue over one of the
// cached prefixes (bench/sched/radix_orders.h).
nlohmann::ordered_json BenchOverhead(int32_t num_waiting, int32_t num_groups);

}  // namespace skein
