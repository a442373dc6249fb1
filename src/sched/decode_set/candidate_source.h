#pragma once

#include <cstdint>
#include <optional>

#include "kv/chunked_hash_tree.h"
#include "sched/decode_set/stop_table.h"
#include "sched/sequence.h"

namespace skein {

// The requests that PrefixGroups knows, waiting or in the batch. Finds the waiting request that
// best joins the batch. Experiments compare prefixes in other ways than HashTreeSource does
// (bench/sched/candidates.h). Not thread-safe.
class CandidateSource {
 public:
  using Handle = int32_t;  // names a request; small, and reused once the request is gone
  using Rank = ChunkedHashTree::Rank;

  virtual ~CandidateSource() = default;

  // Adds the waiting request of `sequence`. REQUIRES: its prompt is hashed; the sequence lives
  // until the request is removed.
  virtual Handle Insert(const Sequence& sequence, const Rank& rank) = 0;
  // Moves a waiting request into the batch.
  virtual void Add(Handle request) = 0;
  // Removes a request from the batch.
  virtual void Finish(Handle request) = 0;
  // Removes a waiting request.
  virtual void Remove(Handle request) = 0;

  // The best waiting request; nullopt if none waits.
  virtual std::optional<Handle> FindBest() = 0;
  // The question to the stop policy about this waiting request.
  virtual StopQuestion QuestionOf(Handle request) const = 0;

  virtual int32_t num_waiting() const = 0;
  virtual int32_t num_active() const = 0;
  // Tokens that all requests of the batch share, as far as the source knows.
  virtual int64_t shared_tokens() const = 0;
  // The tree by which the source compares prefixes, and the tokens of one of its levels. Null if
  // the source compares them in another way.
  virtual const ChunkedHashTree* tree() const { return nullptr; }
  virtual int32_t level_tokens() const { return 0; }
  virtual void CheckIntegrity() const {}
};

// Finds candidates by the hashes of their prompts, in a chunked hash tree. A chunk has
// `blocks_per_chunk` KV blocks. Allocates nothing while it holds no more requests than at its peak.
class HashTreeSource final : public CandidateSource {
 public:
  // REQUIRES: blocks_per_chunk >= 1.
  explicit HashTreeSource(int32_t blocks_per_chunk);

  Handle Insert(const Sequence& sequence, const Rank& rank) override;
  void Add(Handle request) override { tree_.Add(request); }
  void Finish(Handle request) override { tree_.Finish(request); }
  void Remove(Handle request) override { tree_.Remove(request); }
  std::optional<Handle> FindBest() override;
  StopQuestion QuestionOf(Handle request) const override;
  int32_t num_waiting() const override { return tree_.num_waiting(); }
  int32_t num_active() const override { return tree_.num_active(); }
  int64_t shared_tokens() const override;
  const ChunkedHashTree* tree() const override { return &tree_; }
  int32_t level_tokens() const override { return chunk_tokens(); }
  void CheckIntegrity() const override { tree_.CheckIntegrity(); }

 private:
  int32_t chunk_tokens() const { return kBlockTokens * blocks_per_chunk_; }

  const int32_t blocks_per_chunk_;
  ChunkedHashTree tree_{ChunkedHashTree::Choice::kLeastPrefixLoss};
};

}  // namespace skein
