#include "runtime/memory_plan.h"

#include <algorithm>
#include <string>

#include "kernels/kv_layout.h"
#include "kv/block_pool.h"
#include "model/forward/expert_routes.h"

namespace skein {
namespace {

constexpr PrefillMode kModes[] = {
    {.name = "paged"},
    {.name = "chunked", .in_steps = true},
    {.name = "drop-kv", .retention = Retention::kNone},
    {.name = "hybrid-collected",
     .execution = Execution::kHybrid,
     .retention = Retention::kNone,
     .chunk_outputs = ChunkOutputs::kCollected},
    {.name = "hybrid-preallocated",
     .execution = Execution::kHybrid,
     .retention = Retention::kNone,
     .chunk_outputs = ChunkOutputs::kPreallocated},
    {.name = "hybrid", .execution = Execution::kHybrid, .retention = Retention::kNone},
    {.name = "hybrid-prefix", .execution = Execution::kHybrid, .retention = Retention::kPrefix},
};

// For each token: bytes in the request, the batch, and the lists of spans, tiles and output tokens.
constexpr int64_t kListBytesPerToken = 16;

// The largest n of [0, end] for which `fits` holds. REQUIRES: `fits` holds for 0, and wherever it
// fails, it fails for all larger n.
template <typename Fits>
int32_t Largest(int32_t end, const Fits& fits) {
  int32_t begin = 0;
  while (begin < end) {
    const int32_t middle = begin + (end - begin) / 2 + 1;
    fits(middle) ? begin = middle : end = middle - 1;
  }
  return begin;
}

}  // namespace

std::span<const PrefillMode> PrefillModes() { return kModes; }

const PrefillMode* FindPrefillMode(std::string_view name) {
  const auto* found = std::ranges::find(kModes, name, &PrefillMode::name);
  return found == std::end(kModes) ? nullptr : found;
}

StepStates StatesOf(int32_t num_steps, int32_t max_num_seqs) {
  return {.num_steps = num_steps, .num_decodes = num_steps > 1 ? max_num_seqs : 0};
}

ForwardLimits DecodeLimits(ForwardLimits limits, int32_t num_decodes) {
  limits.max_tokens = std::min(limits.max_tokens, num_decodes);
  limits.max_logit_rows = std::min(limits.max_logit_rows, limits.max_tokens);
  limits.max_own_blocks = 0;
  return limits;
}

int64_t RopeBytes(const ModelConfig& config, int32_t num_positions) {
  const int64_t tables = !config.has_rope() ? 0 : config.has_local_layers() ? 2 : 1;
  return tables * num_positions * config.head_dim * 4;
}

int64_t TemporaryBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits,
                       int32_t max_model_len, const StepStates& states) {
  const auto step = [&](const ForwardLimits& of) {
    const int64_t routes = int64_t{of.chunk()} * config.experts_per_token;
    return static_cast<int64_t>(ForwardWorkspace::Bytes(config, dtype, of)) +
           routes * static_cast<int64_t>(sizeof(ExpertRoutes::Route)) +
           kListBytesPerToken * std::max(of.max_tokens, max_model_len);
  };
  const int64_t decodes =
      states.num_decodes > 0 ? step(DecodeLimits(limits, states.num_decodes)) : 0;
  return states.num_steps * step(limits) + decodes + RopeBytes(config, max_model_len);
}

// A stack holds the sums of q, k and v (192 KiB) and, on top of them, the rows and sums of a
// product (768 and 512 KiB). The scratch memory of attention is smaller. It depends on the product
// how much of this is written, so all of it is counted. With rows in tiles and all of k in one
// strip, most of it is margin.
//
// Huge pages on request add nothing: they are in buffers that are counted completely (HugePages). A
// system that uses huge pages without request (transparent_hugepage=always) also uses them for
// stacks: up to 2.5 MiB more for each thread.
int64_t FixedBytes(int num_threads) {
  constexpr int64_t kUncounted = int64_t{1} << 20;  // pages of code, the allocator, tables
  return kUncounted + num_threads * kThreadStackBytes;
}

int32_t StatesFor(const ModelConfig& config, int32_t max_num_seqs) {
  constexpr int32_t kCutPrompts = 8;
  return config.has_linear_layers() ? 2 * max_num_seqs + kCutPrompts : 0;
}

int64_t SamplerBytes(const ModelConfig& config, int num_threads, bool draws) {
  const int64_t per_id = draws ? 20 : 12;  // a value, a count and an id; and a candidate
  return num_threads * int64_t{config.vocab_size} * per_id;
}

ForwardLimits LimitsOf(const PrefillMode& mode, int32_t num_tokens) {
  const int32_t kept = KvBlocksOf(mode, num_tokens);
  return {.max_tokens = mode.in_steps ? std::min(num_tokens, kHybridChunkTokens) : num_tokens,
          .max_logit_rows = 1,
          .chunk_tokens = mode.execution == Execution::kHybrid ? kHybridChunkTokens : 0,
          .max_own_blocks = mode.retention == Retention::kAll ? 0 : BlocksFor(num_tokens) - kept,
          .chunk_outputs = mode.chunk_outputs};
}

int32_t KvBlocksOf(const PrefillMode& mode, int32_t num_tokens) {
  if (mode.retention == Retention::kAll) return BlocksFor(num_tokens);
  // A prefix that is kept may be as short as one block.
  return mode.retention == Retention::kPrefix ? std::min(1, num_tokens / kBlockTokens) : 0;
}

int64_t KvBlockBytes(const ModelConfig& config, DType dtype) {
  const KvLayout block = {dtype, config.num_kv_layers(), 1, config.num_kv_heads, config.head_dim};
  return static_cast<int64_t>(block.total_bytes());
}

int64_t RequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                     int32_t num_tokens, int num_threads) {
  return FixedBytes(num_threads) + SamplerBytes(config, num_threads, /*draws=*/false) +
         TemporaryBytes(config, dtype, LimitsOf(mode, num_tokens), num_tokens) +
         KvBlocksOf(mode, num_tokens) * KvBlockBytes(config, dtype);
}

int32_t MaxInputTokens(int64_t memory_bytes, const std::function<int64_t(int32_t)>& request_bytes) {
  constexpr int32_t kMaxTokens = 1 << 28;
  return Largest(kMaxTokens, [&](int32_t n) { return request_bytes(n) <= memory_bytes; });
}

int32_t MaxInputTokens(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                       int64_t memory_bytes, int num_threads) {
  return MaxInputTokens(
      memory_bytes, [&](int32_t n) { return RequestBytes(config, dtype, mode, n, num_threads); });
}

Result<MemorySplit> SplitMemory(const MemoryNeeds& needs, int32_t max_model_len, int32_t longest) {
  const auto temporary = [&](int32_t n) { return needs.fixed_bytes + needs.step_bytes(n); };
  const auto fits = [&](int32_t n, int64_t bytes) {
    const int32_t kept = needs.retention == Retention::kAll ? BlocksFor(n) : 1;
    const int64_t least = needs.num_kv_blocks > 0 ? needs.num_kv_blocks : kept;
    return temporary(n) + least * needs.block_bytes <= bytes;
  };
  const auto longest_in = [&](int64_t bytes) {
    return Largest(longest, [&](int32_t n) { return fits(n, bytes); });
  };
  int32_t length = max_model_len;
  if (max_model_len == 0) {
    // With Retention::kAll, the prompt itself needs the cache.
    const bool keeps_half = needs.retention != Retention::kAll && needs.num_kv_blocks == 0;
    length = longest_in(keeps_half ? needs.memory_bytes / 2 : needs.memory_bytes);
  }
  if (length < 1 || !fits(length, needs.memory_bytes)) {
    const std::string memory = std::to_string(needs.memory_bytes) + " bytes beside the weights";
    const int32_t most = max_model_len == 0 ? 0 : longest_in(needs.memory_bytes);
    if (most == 0) {
      return Status(StatusCode::kInvalidArgument,
                    "memory is " + memory + ", which hold no prompt; " +
                        std::to_string(needs.fixed_bytes) + " bytes are taken in any case",
                    "memory");
    }
    return Status(StatusCode::kInvalidArgument,
                  "max_model_len is " + std::to_string(max_model_len) + "; in " + memory +
                      " at most " + std::to_string(most) + " tokens fit",
                  "max_model_len");
  }
  MemorySplit split = {.temporary_bytes = temporary(length), .max_model_len = length};
  const int64_t rest = (needs.memory_bytes - split.temporary_bytes) / needs.block_bytes;
  split.num_kv_blocks = needs.num_kv_blocks > 0
                            ? needs.num_kv_blocks
                            : static_cast<int32_t>(std::min<int64_t>(rest, 1 << 30));
  return split;
}

}  // namespace skein
