#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "model/config/config.h"
#include "model/forward/workspace.h"
#include "sched/config.h"

namespace skein {

// Tokens that hybrid execution takes at a time outside attention: few enough that the wide
// activations are small beside the rest, enough that the weights are read seldom. Chosen by
// measurement: `scripts/exp_prefill_only chunked` compares sizes.
inline constexpr int32_t kHybridChunkTokens = 512;

// A way to compute the prompt of one request: the two that are served from a prefix cache of whole
// prompts, the ones of hybrid prefilling, and what lies between, to tell their parts' shares.
struct PrefillMode {
  std::string_view name;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  bool in_steps = false;  // the prompt is cut into steps of kHybridChunkTokens
};
std::span<const PrefillMode> PrefillModes();
// Null for an unknown name.
const PrefillMode* FindPrefillMode(std::string_view name);

// Steps that keep their state at a time: so many of any kind and, with `num_decodes` above 0,
// beside them one of decodes alone, of at most so many.
struct StepStates {
  int32_t num_steps = 1;
  int32_t num_decodes = 0;
};

// Those of a runtime that keeps the state of `num_steps` steps (MemoryChoices): where that is more
// than one, a step of all decodes runs beside them.
StepStates StatesOf(int32_t num_steps, int32_t max_num_seqs);

// What that last one takes of the limits of a step.
ForwardLimits DecodeLimits(ForwardLimits limits, int32_t num_decodes);

// Bytes beside the weights that a runtime with these limits takes at most, apart from the pool of
// KV blocks: activations of the steps that keep their state at a time, angles of rotation up to
// max_model_len, the lists of tokens and tiles.
int64_t TemporaryBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits,
                       int32_t max_model_len, const StepStates& states = {});

// The stack that a thread of the team uses at most, with the kernels' scratch memory on it.
inline constexpr int64_t kThreadStackBytes = int64_t{1536} << 10;

// What threads take whatever the model and the length: their stacks, and what is not counted one by
// one. A runtime may measure that too: the more of both counts.
int64_t FixedBytes(int num_threads);

// The sampler's tables, of each thread; `draws`: tokens are drawn, not only read.
int64_t SamplerBytes(const ModelConfig& config, int num_threads, bool draws);

// The limits of a pass that computes a prompt of so many tokens in this mode, for one output.
ForwardLimits LimitsOf(const PrefillMode& mode, int32_t num_tokens);
// KV blocks of all layers that it holds, at least.
int32_t KvBlocksOf(const PrefillMode& mode, int32_t num_tokens);

// Bytes beside the weights for a request of so many tokens in this mode, of which labels are read.
int64_t RequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                     int32_t num_tokens, int num_threads);
// The most tokens for which that is at most `memory_bytes`; 0 where not even one fits. The model's
// own context is no limit here.
int32_t MaxInputTokens(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                       int64_t memory_bytes, int num_threads);

// How a limit on memory is shared between what the largest step needs and the pool of KV blocks,
// which is the prefix cache.
struct MemorySplit {
  int64_t temporary_bytes = 0;  // of the step, with what is set aside
  int32_t max_model_len = 0;
  int32_t num_kv_blocks = 0;
};
// `limits(n)`: those of a step where prompts have up to n tokens. Retention kAll keeps blocks for
// one whole prompt at least, else one block. With `max_model_len` the length is that; nullopt where
// it does not fit. 0: as long as `longest` tokens, and as half of the memory takes. `fixed_bytes`
// are set aside.
std::optional<MemorySplit> SplitMemory(const ModelConfig& config, DType dtype, Retention retention,
                                       const std::function<ForwardLimits(int32_t)>& limits,
                                       int64_t memory_bytes, int64_t fixed_bytes,
                                       const StepStates& states, int32_t max_model_len,
                                       int32_t longest);

}  // namespace skein
