#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "base/result.h"
#include "model/config/config.h"
#include "model/forward/workspace.h"
#include "sched/config.h"

namespace skein {

// The tokens of a chunk in hybrid execution. They are so few that the wide activations are small
// compared with the rest, and so many that the weights are read seldom. The number was measured:
// `scripts/exp_prefill_only chunked` compares sizes.
inline constexpr int32_t kHybridChunkTokens = 512;

// A way to compute the prompt of one request. Two modes use a prefix cache of whole prompts, some
// are hybrid. The modes between them show what each part of hybrid prefilling saves.
struct PrefillMode {
  std::string_view name;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  bool in_steps = false;  // the prompt is cut into steps of kHybridChunkTokens
};
std::span<const PrefillMode> PrefillModes();
// Returns null for an unknown name.
const PrefillMode* FindPrefillMode(std::string_view name);

// The steps that keep their state at the same time: `num_steps` of any kind. With `num_decodes`
// above 0, there is also one step of at most `num_decodes` decodes.
struct StepStates {
  int32_t num_steps = 1;
  int32_t num_decodes = 0;
};

// The states of a runtime with `num_steps` steps (NumSteps). If there is more than one, a step of
// all decodes runs beside them.
StepStates StatesOf(int32_t num_steps, int32_t max_num_seqs);

// The limits of a step of at most `num_decodes` decodes.
ForwardLimits DecodeLimits(ForwardLimits limits, int32_t num_decodes);

// The bytes of the rotation angles of so many positions (RopeAngles).
int64_t RopeBytes(const ModelConfig& config, int32_t num_positions);

// The most bytes that a runtime with these limits takes, without the weights and the pool of KV
// blocks. They are the activations of the steps that keep their state, rotation angles up to
// max_model_len, and the lists of tokens and tiles.
int64_t TemporaryBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits,
                       int32_t max_model_len, const StepStates& states = {});

// The most stack that a thread of the team uses, with the scratch memory of the kernels.
inline constexpr int64_t kThreadStackBytes = int64_t{1536} << 10;

// The bytes that depend neither on the model nor on the length: the threads' stacks, and small
// items that are not counted one by one. A runtime may measure these bytes, too; the larger number
// is used.
int64_t FixedBytes(int num_threads);

// The slots for states of a model with linear layers: for max_num_seqs sequences, as many
// snapshots, and a few prompts that are cut. 0 for other models.
int32_t StatesFor(const ModelConfig& config, int32_t max_num_seqs);

// The bytes of the sampler's tables for all threads. `draws`: whether tokens are drawn, not only
// read.
int64_t SamplerBytes(const ModelConfig& config, int num_threads, bool draws);

// The limits of a pass that computes a prompt of `num_tokens` tokens in this mode, for one output.
ForwardLimits LimitsOf(const PrefillMode& mode, int32_t num_tokens);
// The least number of KV blocks, for all layers, that a request of `num_tokens` tokens holds in
// this mode.
int32_t KvBlocksOf(const PrefillMode& mode, int32_t num_tokens);

// The bytes, besides the weights, for a request of `num_tokens` tokens in this mode that reads
// labels.
int64_t RequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                     int32_t num_tokens, int num_threads);
// The most tokens for which RequestBytes is at most `memory_bytes`; 0 if not even one token fits.
// The model's context is ignored.
int32_t MaxInputTokens(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                       int64_t memory_bytes, int num_threads);
// The most tokens for which `request_bytes`, which grows with them, is at most `memory_bytes`.
int32_t MaxInputTokens(int64_t memory_bytes, const std::function<int64_t(int32_t)>& request_bytes);

// The bytes of a block of keys and values of all layers.
int64_t KvBlockBytes(const ModelConfig& config, DType dtype);

// The memory beside the weights, and the items that take it.
struct MemoryNeeds {
  int64_t memory_bytes = 0;
  int64_t fixed_bytes = 0;    // taken whatever the length of prompts
  int64_t block_bytes = 0;    // of a KV block
  int32_t num_kv_blocks = 0;  // 0: as many as the rest of the memory holds
  Retention retention = Retention::kAll;
  // The bytes of all steps that keep their state, with prompts of up to n tokens. Grows with n.
  std::function<int64_t(int32_t)> step_bytes;
};
// The parts of a memory limit: the needs of the largest step, and the pool of KV blocks, which is
// the prefix cache.
struct MemorySplit {
  int64_t temporary_bytes = 0;  // of the steps, including the fixed bytes
  int32_t max_model_len = 0;
  int32_t num_kv_blocks = 0;
};
// Splits the memory. Retention::kAll keeps blocks for at least one whole prompt, the other
// retentions for at least one block. If `max_model_len` is above 0, it is the length. If it is 0,
// the length is at most `longest`; unless the retention is kAll, or the number of blocks is given,
// its step takes at most half of the memory. Fails with kInvalidArgument: `max_model_len`, if this
// length does not fit, with the longest that does; `memory`, if none fits.
Result<MemorySplit> SplitMemory(const MemoryNeeds& needs, int32_t max_model_len, int32_t longest);

}  // namespace skein
