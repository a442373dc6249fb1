// Counts the heap allocations of the chunked hash tree. Once the tree is warm, it allocates
// nothing, and in the end no memory remains allocated.

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "kv/chunked_hash_tree.h"
#include "testing/counted_allocations.h"

namespace skein {
namespace {

constexpr int kRequests = 200;

std::vector<std::vector<uint64_t>> SomeVectors() {
  std::vector<std::vector<uint64_t>> vectors(kRequests);
  ChunkHasher hasher(8);
  Random random(3);
  for (std::vector<uint64_t>& vector : vectors) {
    std::vector<int32_t> tokens(random.Between(1, 400), static_cast<int32_t>(random.Between(0, 4)));
    for (size_t i = tokens.size() / 2; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int32_t>(random.Between(0, 1));
    }
    hasher.Streaming(tokens, 0, &vector);
  }
  return vectors;
}

// Inserts, adds, finishes and removes at random for `num_ops` operations, then empties the tree.
void Churn(ChunkedHashTree* tree, const std::vector<std::vector<uint64_t>>& vectors, int num_ops,
           uint64_t seed, std::vector<ChunkedHashTree::Handle>* handles) {
  Random random(seed);
  handles->clear();
  for (int op = 0; op < num_ops || !handles->empty(); ++op) {
    const bool may_insert = op < num_ops && handles->size() < kRequests;
    if (may_insert && (handles->empty() || random.OneIn(3))) {
      const auto& vector = vectors[random.Between(0, kRequests - 1)];
      handles->push_back(tree->Insert(ViewOf(vector), {.arrival = static_cast<uint64_t>(op)}));
      continue;
    }
    if (random.OneIn(2)) {
      if (const auto best = tree->FindBest()) tree->Add(best->request);
      continue;
    }
    const size_t i = random.Between(0, std::ssize(*handles) - 1);
    if (tree->active((*handles)[i])) {
      tree->Finish((*handles)[i]);
    } else {
      tree->Remove((*handles)[i]);
    }
    (*handles)[i] = handles->back();
    handles->pop_back();
  }
}

TEST(Allocation, ChunkedHashTreeAllocatesNothingOnceWarm) {
  const auto vectors = SomeVectors();
  std::vector<ChunkedHashTree::Handle> handles;
  handles.reserve(kRequests);
  for (const bool reserve : {true, false}) {
    ChunkedHashTree tree(ChunkedHashTree::Choice::kLeastPrefixLoss);
    if (reserve) {
      tree.Reserve(kRequests);
    } else {
      for (const auto& vector : vectors) handles.push_back(tree.Insert(ViewOf(vector), {}));
      for (const auto handle : handles) tree.Remove(handle);
      Churn(&tree, vectors, 5000, 9, &handles);  // the tree has reached its largest size
    }
    const int64_t before = num_allocations;
    Churn(&tree, vectors, 20000, 1, &handles);
    EXPECT_EQ(num_allocations - before, 0) << "reserve " << reserve;
    EXPECT_EQ(tree.num_nodes(), 1);
  }
}

}  // namespace
}  // namespace skein
