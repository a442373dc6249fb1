#include "engine/handover/prefix_transfer.h"

#include <algorithm>

#include "base/check.h"
#include "sched/sequence_blocks.h"

namespace skein {

int32_t ExportPrefix(BlockManager* manager, const KvPort& port, const PrefixScope& scope,
                     std::span<const TokenId> prompt, size_t max_bytes, size_t frame_bytes,
                     const std::function<void(WireBytes)>& take) {
  SKEIN_CHECK(!manager->states().enabled() && !prompt.empty());
  const size_t block_bytes = port.port_bytes();
  SequenceBlocks blocks(scope);
  blocks.Hash(prompt);
  // The decode instance computes the prompt's last token in any case.
  const auto most = static_cast<int32_t>(prompt.size()) - 1;
  const int32_t num_cached = blocks.Attach(manager, prompt, most, {.num_blocks = 0}, 0);
  const auto num_blocks = static_cast<int32_t>(
      std::min<size_t>(std::max(0, num_cached) / kBlockTokens, max_bytes / block_bytes));
  const auto per_frame = static_cast<int32_t>(std::max<size_t>(1, frame_bytes / block_bytes));
  std::vector<std::byte> data;
  for (int32_t first = 0; first < num_blocks; first += per_frame) {
    const int32_t end = std::min(num_blocks, first + per_frame);
    data.resize((end - first) * block_bytes);
    for (int32_t i = first; i < end; ++i) {
      port.ExportBlock(blocks.table()[i],
                       std::span(data).subspan((i - first) * block_bytes, block_bytes));
    }
    const std::span<const TokenId> tokens = prompt.first(size_t{kBlockTokens} * end);
    take(FrameOf(BlockRun{scope, first, {tokens.begin(), tokens.end()}, data}));
  }
  blocks.Release(manager);
  return num_blocks;
}

int32_t ImportPrefix(BlockManager* manager, KvPort* port, const BlockRun& run) {
  SKEIN_CHECK(!manager->states().enabled());
  const size_t block_bytes = port->port_bytes();
  const auto end = static_cast<int32_t>(std::ssize(run.tokens) / kBlockTokens);
  SKEIN_CHECK(run.data.size() == (end - run.first_block) * block_bytes);
  SequenceBlocks blocks(run.scope);
  blocks.Reserve(std::ssize(run.tokens));
  blocks.Hash(run.tokens);
  // Attach never attaches the last token's block. Therefore a token is added behind the blocks.
  std::vector<TokenId> tokens = run.tokens;
  tokens.push_back(0);
  const auto most = static_cast<int32_t>(run.tokens.size());
  int32_t num_blocks =
      std::max(0, blocks.Attach(manager, tokens, most, {.num_blocks = 0}, 0)) / kBlockTokens;
  // If num_blocks is below first_block, the blocks before were evicted, and nothing can be attached
  // behind the gap.
  while (num_blocks >= run.first_block && num_blocks < end) {
    if (!blocks.Grow(manager, int64_t{kBlockTokens} * (num_blocks + 1))) break;
    port->ImportBlock(blocks.table()[num_blocks],
                      run.data.subspan((num_blocks - run.first_block) * block_bytes, block_bytes));
    ++num_blocks;
    blocks.Publish(manager, run.tokens, int64_t{kBlockTokens} * num_blocks);
  }
  blocks.Release(manager);
  return num_blocks;
}

}  // namespace skein
