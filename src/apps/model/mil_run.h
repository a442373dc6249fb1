#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/cpu_runtime.h"
#include "runtime/memory_plan.h"

namespace skein {

struct MilRunOptions {
  std::string model_dir;
  ComputeChoice dtype = ComputeChoice::kAuto;
  int32_t threads = 0;
  int32_t chunk_tokens = 0;              // of hybrid execution; 0: kHybridChunkTokens
  std::function<void()> weights_loaded;  // see CpuRuntimeOptions
};

// Computes a prompt of random tokens in one mode, up to the logits of two labels, in the way of a
// server without other requests.
class MilRun {
 public:
  // Fails as CpuRuntime::Load does.
  static Result<std::unique_ptr<MilRun>> Load(const MilRunOptions& options, const PrefillMode& mode,
                                              int32_t num_tokens);

  // Computes the first `num_tokens` tokens of the prompt and returns the seconds that it took.
  // REQUIRES: 1 <= num_tokens <= the prompt's length.
  double Run(int32_t num_tokens);
  // The values that the last run read. Every mode gives the same bits.
  const std::vector<float>& values() const { return values_; }

 private:
  MilRun(const PrefillMode& mode, int32_t num_tokens, std::unique_ptr<CpuRuntime> runtime);

  const PrefillMode& mode_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> blocks_;  // blocks for the keys and values that are kept
  OutputSpec read_;
  std::unique_ptr<CpuRuntime> runtime_;
  std::vector<float> values_;
};

}  // namespace skein
