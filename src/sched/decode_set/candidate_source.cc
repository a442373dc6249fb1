#include "sched/decode_set/candidate_source.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "kv/chunk_hashes.h"

namespace skein {

HashTreeSource::HashTreeSource(int32_t blocks_per_chunk) : blocks_per_chunk_(blocks_per_chunk) {
  SKEIN_CHECK(blocks_per_chunk >= 1);
}

CandidateSource::Handle HashTreeSource::Insert(const Sequence& sequence, const Rank& rank) {
  const auto prompt = std::span<const TokenId>(sequence.tokens).first(sequence.request->prompt_len);
  return tree_.Insert(SubsampleChunks(sequence.blocks.hashes(), prompt, blocks_per_chunk_), rank);
}

std::optional<CandidateSource::Handle> HashTreeSource::FindBest() {
  const std::optional<ChunkedHashTree::Candidate> best = tree_.FindBest();
  if (!best) return std::nullopt;
  return best->request;
}

StopQuestion HashTreeSource::QuestionOf(Handle request) const {
  const ChunkedHashTree::Candidate one = tree_.Evaluate(request);
  return {.batch_size = tree_.num_active(),
          .lost_tokens = std::max(0, one.shared_before - one.shared_after) * chunk_tokens(),
          .num_peers = one.num_peers};
}

int64_t HashTreeSource::shared_tokens() const {
  return int64_t{tree_.shared_depth()} * chunk_tokens();
}

}  // namespace skein
