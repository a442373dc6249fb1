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

// One prompt of random tokens, computed in one mode to the logits of two labels, as the server
// would compute it when that is all it has to do.
class MilRun {
 public:
  // Fails as CpuRuntime::Load does.
  static Result<std::unique_ptr<MilRun>> Load(const MilRunOptions& options, const PrefillMode& mode,
                                              int32_t num_tokens);

  // Computes the first `num_tokens` of the prompt; seconds that it took. REQUIRES: there are so
  // many, and at least one.
  double Run(int32_t num_tokens);
  // The values that the last run read. The same bits in every mode.
  const std::vector<float>& values() const { return values_; }

 private:
  MilRun(const PrefillMode& mode, int32_t num_tokens, std::unique_ptr<CpuRuntime> runtime);

  const PrefillMode& mode_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> blocks_;  // what is kept
  OutputSpec read_;
  std::unique_ptr<CpuRuntime> runtime_;
  std::vector<float> values_;
};

}  // namespace skein
