#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/handover/messages.h"
#include "engine/kv_port.h"
#include "kv/block_manager.h"
#include "kv/prefix_hashes.h"

namespace skein {

// Moves cached prefixes between the prefix caches of two engines. Both functions run on the
// engine's thread, between steps (EngineLoop::VisitBlocks), and keep no references. A transferred
// prefix is cached like any other prefix. The prompt that needs it finds it; if it was evicted
// before, it is computed again. REQUIRES: the model has no linear layers, whose states are not
// transferred; storage is paged.

// Copies the cached full blocks of the first tokens of `prompt`, at most `max_bytes`. Gives them to
// `take`, as BlockRun frames with at most `frame_bytes` of data each, or with one block. Returns
// the number of blocks.
int32_t ExportPrefix(BlockManager* manager, const KvPort& port, const PrefixScope& scope,
                     std::span<const TokenId> prompt, size_t max_bytes, size_t frame_bytes,
                     const std::function<void(WireBytes)>& take);

// Puts the blocks into the prefix cache, if they continue a prefix that is there, and as far as
// memory is available; older blocks are evicted for them. Returns the number of blocks of the
// prefix that are then cached.
int32_t ImportPrefix(BlockManager* manager, KvPort* port, const BlockRun& run);

}  // namespace skein
