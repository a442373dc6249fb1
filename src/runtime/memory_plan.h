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

// Tokens of a chunk of hybrid execution. Few enough that the wide activations are small beside the
// rest; many enough that the weights are read seldom. Measured: `scripts/exp_prefill_only chunked`
// compares sizes.
inline constexpr int32_t kHybridChunkTokens = 512;

// A way to compute the prompt of one request. Two modes are served from a prefix cache of whole
// prompts, some are hybrid, and the modes between tell the shares of the parts.
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

// The steps that keep their state at a time: `num_steps` of any kind. With `num_decodes` above 0,
// also one step of at most `num_decodes` decodes.
struct StepStates {
  int32_t num_steps = 1;
  int32_t num_decodes = 0;
};

// The states of a runtime with `num_steps` steps (NumSteps). If that is more than one, a step
// of all decodes runs beside them.
StepStates StatesOf(int32_t num_steps, int32_t max_num_seqs);

// The limits of that step of decodes.
ForwardLimits DecodeLimits(ForwardLimits limits, int32_t num_decodes);

// The most bytes beside the weights that a runtime with these limits takes, without the pool of KV
// blocks. They are activations of the steps that keep their state, rotation angles up to
// max_model_len, and the lists of tokens and tiles.
int64_t TemporaryBytes(const ModelConfig& config, DType dtype, const ForwardLimits& limits,
                       int32_t max_model_len, const StepStates& states = {});

// The most stack that a thread of the team uses, with the scratch memory of the kernels.
inline constexpr int64_t kThreadStackBytes = int64_t{1536} << 10;

// Bytes that do not depend on the model or the length: the threads' stacks, and small items that
// are not counted one by one. A runtime may measure them too; the larger number counts.
int64_t FixedBytes(int num_threads);

// The slots for states of a model with linear layers: those of max_num_seqs sequences, as many
// snapshots, and a few for prompts that are cut. 0 for other models.
int32_t StatesFor(const ModelConfig& config, int32_t max_num_seqs);

// Bytes of the sampler's tables for all threads. `draws`: whether tokens are drawn, not only read.
int64_t SamplerBytes(const ModelConfig& config, int num_threads, bool draws);

// The limits of a pass that computes a prompt of `num_tokens` tokens in this mode, for one output.
ForwardLimits LimitsOf(const PrefillMode& mode, int32_t num_tokens);
// The KV blocks of all layers that such a request holds, at least.
int32_t KvBlocksOf(const PrefillMode& mode, int32_t num_tokens);

// Bytes beside the weights for a request of `num_tokens` tokens in this mode, which reads labels.
int64_t RequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                     int32_t num_tokens, int num_threads);
// The most tokens for which RequestBytes is at most `memory_bytes`; 0 if not even one fits. Ignores
// the context of the model.
int32_t MaxInputTokens(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                       int64_t memory_bytes, int num_threads);

// The shares of a memory limit: the needs of the largest step, and the pool of KV blocks, which is
// the prefix cache.
struct MemorySplit {
  int64_t temporary_bytes = 0;  // of the step, with `fixed_bytes`
  int32_t max_model_len = 0;
  int32_t num_kv_blocks = 0;
};
// Splits `memory_bytes`. `limits(n)`: those of a step with prompts of up to n tokens.
// Retention::kAll keeps blocks for at least one whole prompt, the others for at least one block.
// `max_model_len` above 0 is the length, and the result is nullopt if it does not fit. For 0 the
// length is at most `longest` and takes at most half of the memory. `fixed_bytes` are set aside.
std::optional<MemorySplit> SplitMemory(const ModelConfig& config, DType dtype, Retention retention,
                                       const std::function<ForwardLimits(int32_t)>& limits,
                                       int64_t memory_bytes, int64_t fixed_bytes,
                                       const StepStates& states, int32_t max_model_len,
                                       int32_t longest);

}  // namespace skein
