#include "bench/kernels/forward.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <variant>

#include "base/check.h"
#include "base/random.h"
#include "bench/serving/load_report.h"
#include "runtime/cpu_runtime.h"

namespace skein {
namespace {

// Numbers of weights in one layer: those that make keys and values, all others that a token meets,
// and those of one expert.
struct LayerParameters {
  LayerParameters(const ModelConfig& c, int32_t layer) {
    const double hidden = c.hidden_size;
    kv = 2 * hidden * c.num_kv_heads * c.head_dim;
    rest = 2 * hidden * c.num_heads * c.head_dim;
    if (!c.HasExperts(layer)) {
      rest += 3 * hidden * c.intermediate_size;
      return;
    }
    expert = 3 * hidden * c.expert_size;
    rest += hidden * c.num_experts + c.experts_per_token * expert;
    const double shared = c.decoder.shared_expert_size;
    if (shared > 0) rest += 3 * hidden * shared + hidden;
  }

  double kv = 0, rest = 0, expert = 0;
};

// The weights of a layer that some tokens read. Each token has experts of its own, of which none is
// likelier than the others.
double WeightsRead(const ModelConfig& config, int32_t layer, double tokens) {
  const LayerParameters weights(config, layer);
  if (!config.HasExperts(layer)) return weights.kv + weights.rest;
  const double unread =
      std::pow(1.0 - double{1} * config.experts_per_token / config.num_experts, tokens);
  const double experts = config.num_experts * (1.0 - unread);
  return weights.kv + weights.rest + (experts - config.experts_per_token) * weights.expert;
}

}  // namespace

double LayerFlops(const ModelConfig& config, int64_t num_rows, int64_t context, int64_t new_tokens,
                  int64_t num_read) {
  const double width = static_cast<double>(config.num_heads) * config.head_dim;
  const double tokens = static_cast<double>(num_rows * new_tokens);
  // The i-th new token sees context + i + 1 keys.
  const double keys = tokens * (static_cast<double>(context) + (new_tokens + 1) / 2.0);
  const auto read = static_cast<double>(num_read);
  const double read_keys = read * static_cast<double>(context + new_tokens);
  double flops = 0;
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const LayerParameters weights(config, layer);
    const bool is_last = layer == config.num_layers - 1;
    flops += 2 * tokens * weights.kv + 2 * (is_last ? read : tokens) * weights.rest +
             4 * (is_last ? read_keys : keys) * width;
  }
  return flops;
}

ForwardWork WorkOf(const ModelConfig& config, int64_t kv_bytes, double element_bytes,
                   int64_t num_rows, int64_t context, int64_t new_tokens) {
  const double output = static_cast<double>(config.vocab_size) * config.hidden_size;
  double weights = output;
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    weights += WeightsRead(config, layer, static_cast<double>(num_rows * new_tokens));
  }
  ForwardWork work;
  work.flops = LayerFlops(config, num_rows, context, new_tokens, num_rows) +
               2 * static_cast<double>(num_rows) * output;
  work.bytes = weights * element_bytes + static_cast<double>(num_rows * (context + new_tokens)) *
                                             static_cast<double>(kv_bytes);
  return work;
}

struct ForwardBench::Sequence {
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
};

ForwardBench::ForwardBench(Runtime* runtime, uint64_t seed) : runtime_(runtime), seed_(seed) {}

// Sequence number `index`; its blocks have room for `room` tokens.
ForwardBench::Sequence ForwardBench::MakeSequence(int32_t index, int32_t num_tokens,
                                                  int32_t room) const {
  Sequence sequence;
  const int32_t vocab = runtime_->config().vocab_size;
  for (int32_t i = 0; i < num_tokens; ++i) {
    const double uniform = UniformAt(seed_, index, i);
    sequence.tokens.push_back(std::min(static_cast<TokenId>(uniform * vocab), vocab - 1));
  }
  sequence.blocks.resize(static_cast<size_t>(BlocksFor(room)));
  std::iota(sequence.blocks.begin(), sequence.blocks.end(), index * BlocksFor(room));
  SKEIN_CHECK(sequence.blocks.back() < runtime_->num_kv_blocks());
  return sequence;
}

double ForwardBench::TimeStep(const StepPlan& plan) {
  const std::atomic<bool> never{false};
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<Task> task = runtime_->executor().Begin(plan);
  SKEIN_CHECK(runtime_->executor().Resume(*task, never) == TaskStatus::kDone);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double ForwardBench::Prefill(int32_t prompt_tokens, int32_t prompts) {
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  const OutputSpec output = OutputOf(runtime_->config().head);
  const bool draws_token = std::holds_alternative<GenerateSpec>(output);
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < prompts; ++i) {
    sequences.push_back(MakeSequence(i, prompt_tokens, prompt_tokens));
  }
  std::vector<DrawSpec> draws;
  for (const Sequence& sequence : sequences) {
    draws.push_back({.generate = &greedy, .history = sequence.tokens, .prompt_len = prompt_tokens});
  }
  OneShotPlan plan;
  for (int32_t i = 0; i < prompts; ++i) {
    plan.rows.push_back({.tokens = sequences[i].tokens,
                         .block_table = sequences[i].blocks,
                         .draws = std::span(draws).subspan(i, draws_token ? 1 : 0),
                         .read = draws_token ? nullptr : &output});
  }
  return TimeStep(plan);
}

DecodePoint ForwardBench::Decode(int32_t batch, int32_t context, int32_t steps,
                                 const StepFn& on_step) {
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < batch; ++i) {
    sequences.push_back(MakeSequence(i, context + steps + 1, context + steps + 1));
    OneShotPlan fill;
    fill.rows.push_back({.tokens = std::span(sequences[i].tokens).first(context),
                         .block_table = sequences[i].blocks,
                         .state = OwnState(runtime_->executor(), i, 0)});
    TimeStep(fill);
  }
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  std::vector<double> seconds;
  for (int32_t step = 0; step <= steps; ++step) {
    const int32_t position = context + step;
    std::vector<DrawSpec> draws;
    DecodePlan plan;
    for (const Sequence& sequence : sequences) {
      draws.push_back({.generate = &greedy,
                       .history = std::span(sequence.tokens).first(position + 1),
                       .prompt_len = context});
    }
    for (int32_t i = 0; i < batch; ++i) {
      plan.rows.push_back({.begin = position,
                           .tokens = std::span(sequences[i].tokens).subspan(position, 1),
                           .block_table = sequences[i].blocks,
                           .draws = {&draws[i], 1},
                           .state = OwnState(runtime_->executor(), i, position)});
    }
    seconds.push_back(TimeStep(plan));
    if (on_step) on_step(step, seconds.back());
  }
  seconds.erase(seconds.begin());
  return {batch, context, steps, Median(std::move(seconds))};
}

}  // namespace skein
