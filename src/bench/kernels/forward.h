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

// The least arithmetic and memory traffic of a forward pass.
struct ForwardWork {
  double flops = 0;
  // The weights once, keys and values once per reader. Experts of a mixture: as many as the tokens
  // read on average, if none is likelier than the others.
  double bytes = 0;
};

// The work of a pass in which `num_rows` sequences, with `context` tokens each in the cache,
// compute `new_tokens` tokens each and the logits of their last token. Attention counts only
// visible keys. The embedding counts only if it is the output matrix. In the last layer, only the
// tokens whose logits are read count in full; for the others, only their keys and values count.
// `element_bytes`: the bytes of an element of the matrices, on average. `kv_bytes`: those of a
// token's keys and values.
ForwardWork WorkOf(const ModelConfig& config, int64_t kv_bytes, double element_bytes,
                   int64_t num_rows, int64_t context, int64_t new_tokens);

// The operations of the layers in such a pass, if the logits of `num_read` of the sequences are
// read.
double LayerFlops(const ModelConfig& config, int64_t num_rows, int64_t context, int64_t new_tokens,
                  int64_t num_read);

struct DecodePoint {
  int32_t batch = 0;
  int32_t context = 0;  // tokens in the cache before the first step
  int32_t steps = 0;
  double seconds = 0;  // median of the steps after the first, which is not counted
};

// Runs forward passes on random tokens directly on a runtime's executor, without scheduler and
// server.
class ForwardBench {
 public:
  // `runtime` outlives this object.
  ForwardBench(Runtime* runtime, uint64_t seed);

  // The seconds that one pass over whole prompts of a length takes, up to the first (greedy) token
  // of each, or to another output of the model's head (OutputOf). REQUIRES: they fit a step and the
  // KV memory.
  double Prefill(int32_t prompt_tokens, int32_t prompts = 1);

  // Computes `context` tokens for each of `batch` sequences, then decodes `steps` tokens of each.
  // Calls `on_step`, if it is set, after each step; step 0 is not counted. REQUIRES: batch *
  // (context + steps + 1) tokens fit the KV memory, block by block.
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
