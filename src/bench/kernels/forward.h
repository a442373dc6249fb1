#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/executor.h"
#include "model/config/config.h"
#include "model/weights/weights.h"
#include "runtime/runtime.h"

namespace skein {

// Arithmetic and memory traffic that a forward pass cannot do without.
struct ForwardWork {
  double flops = 0;
  double bytes = 0;  // weights once, keys and values once per reader
};

// `num_rows` sequences, each with `context` tokens in the cache, that compute `new_tokens` tokens
// each and take the logits of the last one. Attention counts the visible keys only; the embedding
// counts where it is the output matrix; the last layer counts whole for the tokens that are read
// only, of the others their keys and values.
ForwardWork WorkOf(const ModelConfig& config, WeightTypes types, int64_t num_rows, int64_t context,
                   int64_t new_tokens);

// The layers' part of those operations, where `num_read` of the sequences are read.
double LayerFlops(const ModelConfig& config, int64_t num_rows, int64_t context, int64_t new_tokens,
                  int64_t num_read);

struct DecodePoint {
  int32_t batch = 0;
  int32_t context = 0;  // tokens in the cache when the first step begins
  int32_t steps = 0;
  double seconds = 0;  // of one step, median after one that is not counted
};

// Runs forward passes on random tokens straight through a runtime's executor: no scheduler, no
// server.
class ForwardBench {
 public:
  // `runtime` outlives this.
  ForwardBench(Runtime* runtime, uint64_t seed);

  // Seconds of one whole prompt in one pass, to its first (greedy) token. REQUIRES: the prompt fits
  // a step and the KV memory.
  double Prefill(int32_t prompt_tokens);

  // `batch` sequences decode `steps` tokens behind `context` tokens each, which are computed first.
  // Calls `on_step`, if there is one, behind each step; step 0 is the one that is not counted.
  // REQUIRES: batch * (context + steps + 1) tokens fit the KV memory, block by block.
  using StepFn = std::function<void(int32_t step, double seconds)>;
  DecodePoint Decode(int32_t batch, int32_t context, int32_t steps, const StepFn& on_step = {});

 private:
  struct Sequence;

  Sequence MakeSequence(int32_t index, int32_t num_tokens, int32_t room) const;
  double TimeStep(const StepPlan& plan);

  Runtime* const runtime_;
  const uint64_t seed_;
};

}  // namespace skein
