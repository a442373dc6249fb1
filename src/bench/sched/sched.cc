#include "bench/sched/sched.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/sched/radix_candidate.h"
#include "bench/sched/radix_orders.h"
#include "kv/block_pool.h"
#include "kv/chunked_hash_tree.h"
#include "server/json/json.h"

namespace skein {
namespace {

using Handle = ChunkedHashTree::Handle;
using Tokens = std::vector<int32_t>;

// CPU time of this thread, in which other programs do not count.
int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// The total time and the number of operations of one kind.
struct Clocked {
  int64_t ns = 0;
  int64_t count = 0;

  void Run(int64_t operations, const std::function<void()>& body) {
    const int64_t begin = NowNs();
    body();
    ns += NowNs() - begin;
    count += operations;
  }
  double mean() const { return static_cast<double>(ns) / static_cast<double>(count); }
};

// The prompts of the groups. They are made again at each call: thousands of long prompts would fill
// the memory.
class Prompts {
 public:
  Prompts(const TreeBenchOptions& options, uint64_t seed) : options_(options), random_(seed) {
    SKEIN_CHECK(options.num_suffix_tokens < options.num_tokens);
    prefixes_.resize(options.num_groups);
    for (Tokens& prefix : prefixes_) {
      prefix.resize(options.num_tokens - options.num_suffix_tokens);
      for (int32_t& token : prefix) token = Token();
    }
  }

  Tokens Next() {
    Tokens tokens = prefixes_[random_.Between(0, options_.num_groups - 1)];
    for (int32_t i = 0; i < options_.num_suffix_tokens; ++i) tokens.push_back(Token());
    return tokens;
  }
  const std::vector<Tokens>& prefixes() const { return prefixes_; }

 private:
  int32_t Token() { return static_cast<int32_t>(random_.Between(0, 150'000)); }

  const TreeBenchOptions options_;
  Random random_;
  std::vector<Tokens> prefixes_;
};

// How a request's hash vector is made and read.
struct Hashing {
  std::function<void(const Tokens& tokens, size_t slot)> hash;  // writes the vector of that slot
  std::function<ChunkHashes(size_t slot)> view;
};

struct TreeTimes {
  Clocked hash, insert, add, finish, find_and_add;
  int32_t num_nodes = 0;

  // A copy of the tree is told which request to add, and so times adding alone. Its time is
  // subtracted.
  void WriteTo(Json* json) const {
    (*json)["hash_ns"] = hash.mean();
    (*json)["insert_ns"] = insert.mean();
    (*json)["add_ns"] = add.mean();
    (*json)["finish_ns"] = finish.mean();
    (*json)["find_best_ns"] = std::max(0.0, find_and_add.mean() - add.mean());
  }
};

// Runs the same events on two trees. On the first tree, finding and adding a request are timed
// together. The second tree is told which request to add, and only adding is timed.
class TreeBench {
 public:
  TreeBench(const TreeBenchOptions& options, Hashing hashing)
      : options_(options), hashing_(std::move(hashing)), prompts_(options, 1) {
    for (ChunkedHashTree& tree : trees_) tree.Reserve(options.num_requests);
    for (size_t slot = options.num_requests; slot-- > 0;) free_slots_.push_back(slot);
    slot_of_.resize(options.num_requests);
  }

  TreeTimes Run() {
    const int32_t run = std::min(50, options_.batch_size);  // operations that are timed together
    for (int32_t left = options_.num_requests; left > 0; left -= run) {
      Insert(std::min(left, run));
    }
    for (int32_t left = options_.batch_size; left > 0; left -= run) Add(std::min(left, run));
    for (int32_t left = options_.num_turns; left > 0; left -= run) {
      Finish(run);
      Insert(run);
      Add(run);
    }
    times_.num_nodes = trees_[0].num_nodes();
    return times_;
  }

 private:
  void Insert(int32_t count) {
    std::vector<size_t> slots;
    for (int32_t i = 0; i < count; ++i) {
      slots.push_back(free_slots_.back());
      free_slots_.pop_back();
      const Tokens tokens = prompts_.Next();
      times_.hash.Run(1, [&] { hashing_.hash(tokens, slots.back()); });
    }
    std::vector<Handle> handles(count), others(count);
    const auto insert = [&](ChunkedHashTree* tree, std::vector<Handle>* out) {
      for (int32_t i = 0; i < count; ++i) {
        (*out)[i] = tree->Insert(hashing_.view(slots[i]), {.arrival = num_arrivals_ + i});
      }
    };
    times_.insert.Run(count, [&] { insert(&trees_[0], &handles); });
    insert(&trees_[1], &others);
    SKEIN_CHECK(handles == others);
    num_arrivals_ += count;
    for (int32_t i = 0; i < count; ++i) slot_of_[handles[i]] = slots[i];
  }

  void Add(int32_t count) {
    std::vector<Handle> added(count);
    times_.find_and_add.Run(count, [&] {
      for (Handle& handle : added) {
        handle = trees_[0].FindBest()->request;
        trees_[0].Add(handle);
      }
    });
    times_.add.Run(count, [&] {
      for (const Handle handle : added) trees_[1].Add(handle);
    });
    active_.insert(active_.end(), added.begin(), added.end());
  }

  void Finish(int32_t count) {
    std::vector<Handle> finished(count);
    for (Handle& handle : finished) {
      Handle& one = active_[random_.Between(0, std::ssize(active_) - 1)];
      handle = one;
      one = active_.back();
      active_.pop_back();
      free_slots_.push_back(slot_of_[handle]);
    }
    times_.finish.Run(count, [&] {
      for (const Handle handle : finished) trees_[0].Finish(handle);
    });
    for (const Handle handle : finished) trees_[1].Finish(handle);
  }

  const TreeBenchOptions options_;
  const Hashing hashing_;
  Prompts prompts_;
  Random random_{2};
  ChunkedHashTree trees_[2] = {ChunkedHashTree(ChunkedHashTree::Choice::kLeastPrefixLoss),
                               ChunkedHashTree(ChunkedHashTree::Choice::kLeastPrefixLoss)};
  std::vector<Handle> active_;
  std::vector<size_t> free_slots_;
  std::vector<size_t> slot_of_;  // by handle
  uint64_t num_arrivals_ = 0;
  TreeTimes times_;
};

// Times rounds of `prefix-homogeneous`: one request finishes, another arrives, and the best of the
// waiting requests is added.
double PrefixGroupsRoundUs(const TreeBenchOptions& options, int32_t num_waiting,
                           int32_t num_rounds) {
  Prompts prompts(options, 3);
  ChunkedHashTree tree(ChunkedHashTree::Choice::kLeastPrefixLoss);
  const int32_t num_requests = num_waiting + options.batch_size;
  std::vector<PrefixHashes> hashes(num_requests);
  std::vector<size_t> slot_of(num_requests);
  tree.Reserve(num_requests);
  uint64_t num_arrivals = 0;
  const auto arrive = [&](const Tokens& tokens, size_t slot) {
    hashes[slot] = PrefixHashes();
    hashes[slot].Reserve(std::ssize(tokens));
    hashes[slot].Extend(tokens);
    const Handle handle =
        tree.Insert(SubsampleChunks(hashes[slot], tokens, 1), {.arrival = num_arrivals++});
    slot_of[handle] = slot;
  };
  for (int32_t slot = 0; slot < num_requests; ++slot) arrive(prompts.Next(), slot);
  std::vector<Handle> active;
  for (int32_t i = 0; i < options.batch_size; ++i) {
    active.push_back(tree.FindBest()->request);
    tree.Add(active.back());
  }
  Random random(4);
  Clocked rounds;
  for (int32_t round = 0; round < num_rounds; ++round) {
    Handle& one = active[random.Between(0, std::ssize(active) - 1)];
    const Tokens tokens = prompts.Next();
    rounds.Run(1, [&] {
      tree.Finish(one);
      arrive(tokens, slot_of[one]);
      one = tree.FindBest()->request;
      tree.Add(one);
    });
  }
  return rounds.mean() / 1000;
}

using RadixRank = std::vector<int32_t> (*)(const RadixTree&,
                                           std::span<const std::span<const int32_t>>);

double RadixRoundUs(const TreeBenchOptions& options, int32_t num_waiting, RadixRank order,
                    int32_t num_rounds) {
  Prompts prompts(options, 3);
  RadixTree cached;
  for (const Tokens& prefix : prompts.prefixes()) cached.Insert(prefix);
  std::vector<Tokens> waiting;
  for (int32_t i = 0; i < num_waiting; ++i) waiting.push_back(prompts.Next());
  Clocked rounds;
  for (int32_t round = 0; round < num_rounds; ++round) {
    const std::vector<std::span<const int32_t>> spans(waiting.begin(), waiting.end());
    int32_t first = 0;
    rounds.Run(1, [&] { first = order(cached, spans).front(); });
    waiting[first] = prompts.Next();
  }
  return rounds.mean() / 1000;
}

// Times rounds that make the choice of PrefixGroups over a radix tree.
double RadixGroupsRoundUs(const TreeBenchOptions& options, int32_t num_waiting,
                          int32_t num_rounds) {
  Prompts prompts(options, 3);
  std::vector<Tokens> waiting, active;
  for (int32_t i = 0; i < num_waiting; ++i) waiting.push_back(prompts.Next());
  for (int32_t i = 0; i < options.batch_size; ++i) active.push_back(prompts.Next());
  Random random(4);
  Clocked rounds;
  for (int32_t round = 0; round < num_rounds; ++round) {
    const std::vector<std::span<const int32_t>> batch(active.begin(), active.end());
    std::vector<RadixPrompt> others;
    for (const Tokens& tokens : waiting) others.push_back({tokens, {.arrival = others.size()}});
    int32_t best = 0;
    rounds.Run(1, [&] { best = FindRadixCandidate(batch, others)->index; });
    active[random.Between(0, std::ssize(active) - 1)] =
        std::exchange(waiting[best], prompts.Next());
  }
  return rounds.mean() / 1000;
}

}  // namespace

Json BenchTree(const TreeBenchOptions& options) {
  std::vector<PrefixHashes> hashes(options.num_requests);
  std::vector<ChunkHashes> views(options.num_requests);
  for (PrefixHashes& one : hashes) one.Reserve(options.num_tokens);
  TreeTimes times = TreeBench(options, {.hash =
                                            [&](const Tokens& tokens, size_t slot) {
                                              PrefixHashes fresh;
                                              fresh.Reserve(options.num_tokens);
                                              fresh.Extend(tokens);
                                              hashes[slot] = std::move(fresh);
                                              views[slot] =
                                                  SubsampleChunks(hashes[slot], tokens, 1);
                                            },
                                        .view = [&](size_t slot) { return views[slot]; }})
                        .Run();
  Json json = {{"requests", options.num_requests}, {"tokens", options.num_tokens},
               {"groups", options.num_groups},     {"suffix_tokens", options.num_suffix_tokens},
               {"batch", options.batch_size},      {"chunk_tokens", kBlockTokens},
               {"nodes", times.num_nodes}};
  times.WriteTo(&json);
  return json;
}

Json BenchChunkSizes(const TreeBenchOptions& options) {
  Json rows = Json::array();
  for (const bool streaming : {true, false}) {
    for (int32_t chunk_tokens = 1; chunk_tokens <= 256; chunk_tokens *= 2) {
      ChunkHasher hasher(chunk_tokens);
      std::vector<std::vector<uint64_t>> vectors(options.num_requests);
      const TreeTimes times =
          TreeBench(options, {.hash =
                                  [&](const Tokens& tokens, size_t slot) {
                                    streaming ? hasher.Streaming(tokens, 0, &vectors[slot])
                                              : hasher.Chained(tokens, 0, &vectors[slot]);
                                  },
                              .view = [&](size_t slot) { return ViewOf(vectors[slot]); }})
              .Run();
      Json row = {{"construction", streaming ? "streaming" : "chained"},
                  {"chunk_tokens", chunk_tokens}};
      times.WriteTo(&row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Json BenchOverhead(int32_t num_waiting, int32_t num_groups) {
  Json rows = Json::array();
  for (const int32_t prefix_tokens : {1000, 2000, 5000, 10'000, 20'000}) {
    const TreeBenchOptions options = {.num_tokens = prefix_tokens + 20,
                                      .num_groups = num_groups,
                                      .num_suffix_tokens = 20,
                                      .batch_size = 64};
    const auto row = [&](const char* policy, double us) {
      rows.push_back({{"policy", policy},
                      {"prefix_tokens", prefix_tokens},
                      {"waiting", num_waiting},
                      {"us_per_round", us}});
    };
    row("lpm", RadixRoundUs(options, num_waiting, LpmOrder, 10));
    row("dfs-weight", RadixRoundUs(options, num_waiting, DfsWeightOrder, 10));
    row("prefix-homogeneous", PrefixGroupsRoundUs(options, num_waiting, 2000));
    row("prefix-homogeneous-radix", RadixGroupsRoundUs(options, num_waiting, 10));
  }
  return rows;
}

}  // namespace skein
