#include "bench/serving/rerank.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/random.h"
#include "bench/kernels/forward.h"

namespace skein {
namespace {

constexpr int32_t kLabels = 2;

Request ReadLabels(std::vector<TokenId> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.output = LabelSpec{.tokens = {0, 1}};
  return request;
}

}  // namespace

double RerankFlops(const ModelConfig& config, const RerankShape& shape) {
  return LayerFlops(config, 1, 0, shape.query_tokens, 0) +
         LayerFlops(config, shape.documents, shape.query_tokens, shape.document_tokens,
                    shape.documents) +
         2.0 * shape.documents * kLabels * config.hidden_size;
}

RerankBench::RerankBench(CpuRuntime* runtime, int32_t batch_tokens, uint64_t seed)
    : runtime_(runtime), seed_(seed) {
  EngineConfig config;
  config.vocab_size = runtime->config().vocab_size;
  config.scheduler.max_model_len = runtime->max_model_len();
  config.scheduler.num_kv_blocks = runtime->num_kv_blocks();
  config.scheduler.num_states = runtime->num_states();
  config.scheduler.max_num_batched_tokens = batch_tokens;
  config.scheduler.max_num_seqs = std::min(config.scheduler.max_num_seqs, batch_tokens);
  engine_ = MakeEngine(config, &runtime->executor(), &clock_).value();
}

std::vector<TokenId> RerankBench::Tokens(int32_t count) {
  const uint64_t stream = num_streams_++;
  const int32_t vocab = runtime_->config().vocab_size;
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) {
    const double uniform = UniformAt(seed_, stream, static_cast<uint64_t>(i));
    tokens.push_back(std::min(static_cast<TokenId>(uniform * vocab), vocab - 1));
  }
  return tokens;
}

Result<RerankTime> RerankBench::Rerank(const RerankShape& shape) {
  const std::vector<TokenId> query = Tokens(shape.query_tokens);
  std::vector<Request> requests;
  for (int32_t i = 0; i < shape.documents; ++i) {
    std::vector<TokenId> prompt = query;
    const std::vector<TokenId> document = Tokens(shape.document_tokens);
    prompt.insert(prompt.end(), document.begin(), document.end());
    requests.push_back(ReadLabels(std::move(prompt)));
    requests.back().group.parent_prefix_len = shape.query_tokens;
  }
  const EngineStats before = engine_->Stats();
  RerankTime time;
  SKEIN_ASSIGN_OR_RETURN(time.seconds, Time(std::move(requests)));
  const EngineStats after = engine_->Stats();
  time.shared_tokens =
      static_cast<int64_t>(after.shared_prefix_tokens - before.shared_prefix_tokens);
  time.computed_tokens =
      static_cast<int64_t>(after.iteration_tokens_sum - before.iteration_tokens_sum);
  return time;
}

Result<double> RerankBench::Prefill(int32_t count, int32_t prompt_tokens) {
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i) requests.push_back(ReadLabels(Tokens(prompt_tokens)));
  return Time(std::move(requests));
}

Result<double> RerankBench::Time(std::vector<Request> requests) {
  std::mutex mutex;
  std::condition_variable done;
  size_t num_left = requests.size();
  Status failure;
  const auto callback = [&](RequestOutput output) {
    if (!output.finish) return;
    const std::lock_guard lock(mutex);
    if (!output.status.ok()) failure = output.status;
    if (--num_left == 0) done.notify_all();
  };
  std::vector<RequestId> ids;
  const TimeUs begin_us = clock_.NowUs();
  SKEIN_RETURN_IF_ERROR(engine_->SubmitGroup(std::move(requests), callback, &ids));
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return num_left == 0; });
  SKEIN_RETURN_IF_ERROR(failure);
  return static_cast<double>(clock_.NowUs() - begin_us) / 1e6;
}

}  // namespace skein
