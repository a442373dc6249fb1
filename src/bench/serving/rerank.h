#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine_loop.h"
#include "runtime/cpu_runtime.h"

namespace skein {

// A rerank as the engine gets it: so many documents behind one query, two labels read of each.
struct RerankShape {
  int32_t query_tokens = 2000;
  int32_t documents = 100;
  int32_t document_tokens = 150;

  int32_t prompt_tokens() const { return query_tokens + document_tokens; }
};

// Floating-point operations of the query computed once and each document behind it, attention over
// the query included; of the output matrix two rows.
double RerankFlops(const ModelConfig& config, const RerankShape& shape);

struct RerankTime {
  double seconds = 0;
  int64_t shared_tokens = 0;  // taken from the shared query instead of computed
  int64_t computed_tokens = 0;
};

// Times reranks and batches of prompts that share nothing, by an engine with the default policies
// and random tokens; each call takes tokens of its own, so that nothing is cached.
class RerankBench {
 public:
  // `runtime` outlives this. Steps of at most `batch_tokens`.
  RerankBench(CpuRuntime* runtime, int32_t batch_tokens, uint64_t seed);

  // From submitting the documents as one group to the last answer. Fails as Submit does.
  Result<RerankTime> Rerank(const RerankShape& shape);
  // The same of `count` prompts of `prompt_tokens`; seconds.
  Result<double> Prefill(int32_t count, int32_t prompt_tokens);

 private:
  std::vector<TokenId> Tokens(int32_t count);
  Result<double> Time(std::vector<Request> requests);

  CpuRuntime* const runtime_;
  const uint64_t seed_;
  uint64_t num_streams_ = 0;
  MonotonicClock clock_;
  std::unique_ptr<EngineLoop> engine_;
};

}  // namespace skein
