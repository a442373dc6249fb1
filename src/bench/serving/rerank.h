#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine_loop.h"
#include "runtime/cpu_runtime.h"

namespace skein {

// A rerank as the engine gets it: a number of documents, each after the same query, with two labels
// read for each.
struct RerankShape {
  int32_t query_tokens = 2000;
  int32_t documents = 100;
  int32_t document_tokens = 150;

  int32_t prompt_tokens() const { return query_tokens + document_tokens; }
};

// The floating-point operations if the query is computed once, and each document after it,
// including attention to the query; of the output matrix, only two rows count.
double RerankFlops(const ModelConfig& config, const RerankShape& shape);

struct RerankTime {
  double seconds = 0;
  int64_t shared_tokens = 0;  // taken from the shared query and not computed again
  int64_t computed_tokens = 0;
};

// Times reranks, and batches of prompts that share nothing, on an engine with the default policies
// and random tokens. Each call uses new tokens, so that nothing is cached.
class RerankBench {
 public:
  // `runtime` outlives this object. Steps have at most `batch_tokens` tokens.
  RerankBench(CpuRuntime* runtime, int32_t batch_tokens, uint64_t seed);

  // The time from submitting the documents as one group to the last answer. Fails as Submit does.
  Result<RerankTime> Rerank(const RerankShape& shape);
  // The seconds for `count` separate prompts of `prompt_tokens` tokens.
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
