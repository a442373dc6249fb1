#include "testing/scheduler_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"
#include "testing/fake_executor.h"

namespace skein::testing {
namespace {

struct Expectation {
  Request request;
  int32_t budget = 0;
  std::map<int32_t, std::vector<TokenId>> tokens;
  std::optional<ReadValues> read;
  std::vector<PromptLogprob> prompt_logprobs;
  std::map<int32_t, FinishReason> finish;
  bool failed = false;  // the device was lost meanwhile
};

struct World {
  explicit World(uint64_t seed) : random(seed) {}

  Random random;
  EngineConfig config;
  FakeExecutor::Options options;
  std::map<RequestId, Expectation> expected;
  bool faults = false;
  LoadCounts counts;
};

void SetPreemption(Order preset_order, Random* random, SchedulerConfig* scheduler) {
  Policies& policies = scheduler->policies;
  policies.sharing = random->OneIn(2) ? Sharing::kPreemptOp : Sharing::kPreemptLayer;
  const Granularity usual = GranularityOf(policies.sharing);
  const Granularity granularities[] = {usual, usual, Granularity::kOp, Granularity::kChunk,
                                       Granularity::kNone};
  policies.granularity = granularities[random->Between(0, 4)];
  const Order orders[] = {preset_order, Order::kSrjf,     Order::kSrjfCalibrated, Order::kFair,
                          Order::kEdf,  Order::kSlackEdf, Order::kSlackEdf};
  policies.order = orders[random->Between(0, 6)];
  PreemptionConfig& preemption = scheduler->preemption;
  preemption.max_suspended_steps = static_cast<int32_t>(random->Between(1, 3));
  preemption.max_suspended_us = 1000 * (random->OneIn(2) ? random->Between(1, 50) : 9999);
  const DecodeSteps steps[] = {DecodeSteps::kByCost, DecodeSteps::kOwn, DecodeSteps::kMixed,
                               DecodeSteps::kByCost};
  preemption.decode_steps = steps[random->Between(0, 3)];
  scheduler->cost = {.step_us = 500, .token_us = 40, .pair_us = 0.1, .row_us = 10};
  if (random->OneIn(4)) scheduler->cost = {};
  if (random->OneIn(2)) {
    preemption.express_tokens = static_cast<int32_t>(random->Between(0, 400));
  }
}

EngineConfig RandomConfig(Random* random) {
  const char* presets[] = {"prelude",      "prelude",       "vllm-fcfs",
                           "paged-fcfs",   "request-level", "feather",
                           "prefill-only", "sglang-lpm",    "sglang-dfs-weight"};
  const std::string preset = presets[random->Between(0, 8)];
  EngineConfig config;
  SchedulerConfig& scheduler = config.scheduler;
  Policies& policies = scheduler.policies;
  policies = FindPreset(preset)->policies;
  if (random->OneIn(6) && preset != "request-level") {
    policies.decode_set = random->OneIn(3) ? DecodeSet::kDynamic : DecodeSet::kPrefixHomogeneous;
    if (policies.decode_set == DecodeSet::kDynamic) {
      scheduler.dynamic_step_us = 1000 * random->Between(0, 1);
    }
  }
  if (policies.decode_set == DecodeSet::kPrefixHomogeneous) {
    scheduler.prefix_groups.stop.rule = static_cast<StopRule>(random->Between(0, 4));
  }
  // Steps of a device whose cache holds a few tokens, so that turns pay.
  if (random->OneIn(2)) scheduler.decode_cost = {.step_us = 50, .token_us = 5, .cache_tokens = 60};
  scheduler.prefix_groups.max_wait_stretch = static_cast<int32_t>(random->Between(0, 3));
  scheduler.prefix_groups.max_wait_us = 1000 * (random->OneIn(2) ? 10'000 : random->Between(1, 9));
  if (random->OneIn(2)) {
    policies.order = static_cast<Order>(random->Between(0, 6));  // all but the cache-aware ones
    const Batching batchings[] = {policies.batching, Batching::kSingle,   Batching::kSaturate,
                                  Batching::kBudget, Batching::kSloAware, Batching::kSloAware};
    policies.batching = batchings[random->Between(0, 5)];
    scheduler.deadlines.default_slo_us = 1000 * random->Between(1, 200);
    scheduler.deadlines.max_late_us = 1000 * random->Between(0, 100);
    scheduler.deadlines.slo_batch_tokens = static_cast<int32_t>(random->Between(1, 300));
    scheduler.cost = {.step_us = 500, .token_us = 40, .pair_us = 0.1, .row_us = 10};
    if (random->OneIn(4)) scheduler.cost = {};
  }
  config.vocab_size = 50;
  config.scheduler.max_model_len = static_cast<int32_t>(random->Between(8, 300));
  config.scheduler.num_kv_blocks =
      BlocksFor(config.scheduler.max_model_len) +
      (random->OneIn(2) ? static_cast<int32_t>(random->Between(0, 3))
                        : static_cast<int32_t>(random->Between(0, 60)));
  config.scheduler.max_num_seqs = static_cast<int32_t>(random->Between(1, 12));
  config.scheduler.max_num_batched_tokens =
      config.scheduler.max_num_seqs +
      static_cast<int32_t>(random->Between(0, random->OneIn(2) ? 20 : 400));
  config.scheduler.prefix_caching = !random->OneIn(4);
  config.scheduler.force_decode_path = random->OneIn(8);
  config.embeds = config.classifies = true;
  config.reads_whole_prompts =
      random->OneIn(3) && config.scheduler.max_num_batched_tokens > config.scheduler.max_num_seqs;
  if (random->OneIn(4)) config.scheduler.max_prefix_wait_us = 0;
  if (random->OneIn(3)) {
    const int64_t most = random->OneIn(2) ? 4 : 3 * config.scheduler.max_num_seqs + 8;
    config.scheduler.num_states = static_cast<int32_t>(random->Between(2, most));
  }
  const Retention retentions[] = {policies.retention, policies.retention, Retention::kPrefix,
                                  Retention::kNone, Retention::kValue};
  const int64_t retention = random->Between(0, 4);
  policies.retention = retentions[retention];
  if (retention >= 2 && random->OneIn(2)) {
    scheduler.num_kv_blocks = static_cast<int32_t>(random->Between(1, 6));
  }
  if (random->OneIn(3)) SetPreemption(FindPreset(preset)->policies.order, random, &scheduler);
  return config;
}

// The default preset on a device that predicts long decode steps, so that turns begin.
void UseAuto(Random* random, SchedulerConfig* scheduler) {
  const Retention retention = scheduler->policies.retention;
  scheduler->policies = FindPreset("auto")->policies;
  scheduler->policies.retention = retention;
  scheduler->dynamic_step_us = 0;
  scheduler->prefix_groups.stop.rule = StopRule::kModel;
  scheduler->decode_cost = {.step_us = 50'000, .token_us = 10'000, .cache_tokens = 60};
  scheduler->cost = {.step_us = 500, .token_us = 40, .pair_us = 0.1, .row_us = 10};
  if (random->OneIn(4)) scheduler->cost = {};
}

OutputSpec RandomRead(Random* random) {
  switch (random->Between(0, 2)) {
    case 0:
      return LabelSpec{.tokens = {3, 1, 40}, .want_log_sum_exp = random->OneIn(2)};
    case 1:
      return EmbedSpec{};
    default:
      return ClassifySpec{};
  }
}

Request RandomRequest(World* world) {
  Random& random = world->random;
  Request request;
  request.prompt.resize(random.Between(1, world->config.scheduler.max_model_len - 1));
  // Prompts that share prefixes: most tokens are equal, few positions differ.
  for (TokenId& token : request.prompt) {
    token = random.OneIn(40) ? static_cast<TokenId>(random.Between(0, 2)) : 1;
  }
  if (random.OneIn(20)) request.prompt[random.Between(0, std::ssize(request.prompt) - 1)] = 49;
  GenerateSpec& generate = request.generate();
  generate.max_tokens = static_cast<int32_t>(
      random.OneIn(3) ? random.Between(0, 1)
                      : random.Between(0, world->config.scheduler.max_model_len));
  generate.num_samples =
      random.OneIn(3)
          ? static_cast<int32_t>(random.Between(1, world->config.scheduler.max_num_seqs))
          : 1;
  generate.sampling.seed = random.Bits() % 4;
  if (random.OneIn(2)) generate.stop_token_ids = {static_cast<TokenId>(random.Between(0, 49))};
  if (random.OneIn(4)) generate.min_tokens = generate.max_tokens / 2;
  if (random.OneIn(4)) request.priority = static_cast<int32_t>(random.Between(-1, 1));
  if (random.OneIn(4)) request.slo_tpot_us = random.Between(1, 20'000);
  if (random.OneIn(3)) request.slo_ttft_us = random.Between(1, 300'000);
  if (random.OneIn(8)) request.cache_salt = random.Bits();
  if (random.OneIn(4)) request.user = random.OneIn(2) ? "a" : "b";
  if (random.OneIn(4)) request.output = RandomRead(&random);
  const bool reads_logits =
      request.generates() || std::holds_alternative<LabelSpec>(request.output);
  if (reads_logits && random.OneIn(3)) {
    request.prompt_logprobs = PromptLogprobsSpec{
        .num_top = static_cast<int32_t>(random.Between(0, 2)),
        .start = static_cast<int32_t>(
            random.OneIn(2) ? random.Between(0, std::ssize(request.prompt) - 1) : 0)};
  }
  return request;
}

// A group of mostly OneShot requests that begin with all or most of the first one's tokens.
std::vector<Request> RandomGroup(World* world, uint64_t id) {
  Random& random = world->random;
  std::vector<Request> group = {RandomRequest(world)};
  const int64_t size = random.Between(1, 12);
  const std::vector<TokenId> first = group[0].prompt;
  const int64_t prefix_len = random.Between(1, std::ssize(first));
  while (std::ssize(group) < size) {
    Request request = RandomRequest(world);
    const int64_t own = random.Between(1, std::min<int64_t>(40, std::ssize(request.prompt)));
    request.prompt.erase(request.prompt.begin(), request.prompt.end() - own);
    const int64_t shared = random.OneIn(10) ? random.Between(0, prefix_len) : prefix_len;
    request.prompt.insert(request.prompt.begin(), first.begin(), first.begin() + shared);
    if (request.generates() && !random.OneIn(6)) {
      request.generate() = {.max_tokens = 1};
      request.generate().sampling.seed = random.Bits() % 4;
    }
    group.push_back(std::move(request));
  }
  for (Request& request : group) request.group = {id, static_cast<int32_t>(prefix_len)};
  return group;
}

void Collect(World* world, Scheduler* scheduler) {
  for (SampleOutput& output : scheduler->TakeOutputs()) {
    Expectation& request = world->expected.at(output.request);
    ASSERT_FALSE(request.finish.contains(output.sample));
    if (output.token) request.tokens[output.sample].push_back(output.token->token);
    for (PromptLogprob& logprob : output.prompt_logprobs) {
      EXPECT_EQ(output.sample, 0);
      EXPECT_TRUE(request.tokens[0].empty());  // complete before the first token
      request.prompt_logprobs.push_back(std::move(logprob));
    }
    if (output.read) {
      EXPECT_TRUE(output.finish == FinishReason::kStop && !request.read);
      request.read = std::move(output.read);
    }
    if (output.finish) request.finish[output.sample] = *output.finish;
    EXPECT_EQ(output.status.ok(), output.finish != FinishReason::kError);
  }
}

void CancelSomething(World* world, Scheduler* scheduler, TimeUs now_us) {
  if (world->expected.empty()) return;
  const RequestId id = world->random.Between(0, std::ssize(world->expected) - 1);
  Expectation& request = world->expected.at(id);
  if (world->random.OneIn(2)) {
    scheduler->Cancel(id, now_us);
  } else {
    scheduler->CancelSample(
        id, static_cast<int32_t>(world->random.Between(0, NumSamples(request.request))), now_us);
  }
}

// A third of all requests, complete groups among them.
void CancelMany(Random* random, Scheduler* scheduler, RequestId end, TimeUs now_us) {
  for (RequestId id = 0; id < end; ++id) {
    if (random->OneIn(3)) scheduler->Cancel(id, now_us);
  }
}

// A request or a group arrives.
void ArriveSomething(World* world, const SchedulerConfig& config, Scheduler* scheduler,
                     RequestId* next_id, TimeUs now_us) {
  std::vector<Request> requests;
  if (world->random.OneIn(4)) {
    requests = RandomGroup(world, *next_id + 1);
  } else {
    requests.push_back(RandomRequest(world));
  }
  for (Request& request : requests) {
    if (!Scheduler::CheckFits(config, request).ok()) continue;
    const int32_t room =
        world->config.scheduler.max_model_len - static_cast<int32_t>(request.prompt.size());
    world->expected[*next_id] = {
        .request = request,
        .budget = request.generates() ? std::min(request.generate().max_tokens, room) : 0};
    scheduler->Arrive((*next_id)++, std::move(request), now_us);
  }
}

// The step that runs never completes: every request that lives ends with an error.
void LoseDevice(World* world, Scheduler* scheduler, TimeUs now_us) {
  for (auto& [id, request] : world->expected) {
    request.failed |= std::ssize(request.finish) < NumSamples(request.request);
  }
  scheduler->FailAll(Status(StatusCode::kInternal, "the device is lost"), now_us);
  scheduler->CheckIntegrity();
  Collect(world, scheduler);
  EXPECT_TRUE(scheduler->empty());
}

// The step that runs finds no memory: at most one request ends with an error.
void FailStep(World* world, Scheduler* scheduler, TimeUs now_us) {
  const bool withholds = world->config.scheduler.policies.decode_set == DecodeSet::kStatic;
  Collect(world, scheduler);
  std::map<RequestId, size_t> before;
  for (auto& [id, request] : world->expected) {
    before[id] = request.finish.size();
    // Its end is told with the whole batch's.
    if (withholds) request.failed |= std::ssize(request.finish) < NumSamples(request.request);
  }
  scheduler->FailStep(Status(StatusCode::kUnavailable, "no memory"), now_us);
  scheduler->CheckIntegrity();
  Collect(world, scheduler);
  if (withholds) return;
  int num_failed = 0;
  for (auto& [id, request] : world->expected) {
    if (request.finish.size() == before[id]) continue;
    request.failed = true;
    EXPECT_EQ(std::ssize(request.finish), NumSamples(request.request));
    ++num_failed;
  }
  EXPECT_LE(num_failed, 1);
}

using StoppedTasks = std::map<int64_t, std::unique_ptr<Task>>;  // by step

// Whether the step that has run is lost with its device or for want of memory, as it is now and
// then.
bool StepIsLost(World* world, Scheduler* scheduler, StoppedTasks* stopped, TimeUs now_us) {
  if (world->random.OneIn(30)) {
    LoseDevice(world, scheduler, now_us);
    stopped->clear();
    return true;
  }
  if (!world->random.OneIn(10)) return false;
  FailStep(world, scheduler, now_us);
  return true;
}

constexpr TimeUs kMostJumpUs = 100'000'000'000;  // about a day

LoadCounts CountsOf(const EngineStats& stats) {
  return {.preemptions = static_cast<int64_t>(stats.num_preemptions),
          .shared_tokens = static_cast<int64_t>(stats.shared_prefix_tokens),
          .prefix_waits = static_cast<int64_t>(stats.prefix_waits),
          .suspended = static_cast<int64_t>(stats.steps_preempted),
          .dropped = static_cast<int64_t>(stats.steps_dropped),
          .saved = static_cast<int64_t>(stats.host_kv_blocks_saved),
          .loaded = static_cast<int64_t>(stats.host_kv_blocks_loaded)};
}

void RunWorkload(World* world, int32_t num_requests) {
  Random& random = world->random;
  SchedulerConfig config = MakeSchedulerConfig(world->config).value();
  if (random.OneIn(4)) config.policies.forests = !config.policies.forests;
  Scheduler scheduler(config);
  // Drawn apart, so that seeds of earlier failures keep their loads.
  Random bounds(static_cast<uint64_t>(1000 * config.num_kv_blocks + config.max_model_len));
  if (bounds.OneIn(2)) scheduler.set_max_wait_us(1000 * bounds.Between(1, 200));
  FakeExecutor executor(world->options);
  const std::atomic<bool> never{false};
  StoppedTasks stopped;
  TimeUs now_us = 0;
  RequestId next_id = 0;
  // Runs the step until it has ended; false if it has made way.
  const auto run = [&](std::unique_ptr<Task>& task) {
    while (executor.Resume(*task, never) == TaskStatus::kPreempted) {
      now_us += random.Between(1, 2000);
      if (next_id < static_cast<RequestId>(num_requests) && random.OneIn(2)) {
        ArriveSomething(world, config, &scheduler, &next_id, now_us);
      }
      if (random.OneIn(10)) CancelSomething(world, &scheduler, now_us);
      const StepFate fate = scheduler.Reconsider(now_us);
      scheduler.CheckIntegrity();
      if (fate == StepFate::kSuspended) stopped[scheduler.step_id()] = std::move(task);
      if (fate != StepFate::kGoesOn) return false;
      // The next time lies in the future; a past one would stop the step at every ticket.
      if (Preempts(config.policies.sharing)) {
        EXPECT_GT(scheduler.NextRoundUs().value_or(now_us + 1), now_us);
      }
    }
    return true;
  };
  while (next_id < static_cast<RequestId>(num_requests) || !scheduler.empty()) {
    while (next_id < static_cast<RequestId>(num_requests) && !random.OneIn(3)) {
      ArriveSomething(world, config, &scheduler, &next_id, now_us);
    }
    if (random.OneIn(15)) CancelSomething(world, &scheduler, now_us);
    if (random.OneIn(40)) CancelMany(&random, &scheduler, next_id, now_us);
    now_us += random.Between(1, 20'000);
    if (world->faults && random.OneIn(50)) now_us += random.Between(1, kMostJumpUs);
    const StepPlan* plan = scheduler.Plan(now_us);
    scheduler.CheckIntegrity();
    if (plan == nullptr) continue;
    std::unique_ptr<Task> task;
    if (const auto found = stopped.find(scheduler.step_id()); found != stopped.end()) {
      task = std::move(found->second);
    }
    std::erase_if(stopped, [&](const auto& step) { return !scheduler.IsSuspended(step.first); });
    if (task == nullptr) task = executor.Begin(*plan);
    if (!run(task)) continue;
    if (world->faults && StepIsLost(world, &scheduler, &stopped, now_us)) continue;
    if (random.OneIn(15)) CancelSomething(world, &scheduler, now_us);  // while it is in the step
    StepResults results = executor.Results(*task);
    now_us += random.Between(0, 1000);
    scheduler.Complete(&results, now_us);
    scheduler.CheckIntegrity();
    Collect(world, &scheduler);
  }
  Collect(world, &scheduler);
  const EngineStats stats = scheduler.Stats();
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.num_requests_running + stats.num_requests_waiting, 0);
  world->counts = CountsOf(stats);
  EXPECT_LE(executor.num_host_copies(), world->counts.saved + world->counts.loaded);
}

// Any draw or read after the poison token fails the request.
bool IsPoisoned(const World& world, const Expectation& request) {
  const TokenId poison = world.options.poison_token;
  const std::vector<TokenId>& prompt = request.request.prompt;
  if (request.request.prompt_logprobs) {
    const int32_t first = std::max(request.request.prompt_logprobs->start, 1) - 1;
    if (first < std::ssize(prompt) &&
        std::count(prompt.begin() + first, prompt.end() - 1, poison) > 0) {
      return true;
    }
  }
  if (!request.request.generates()) return prompt.back() == poison;
  if (request.budget > 0 && request.request.prompt.back() == poison) return true;
  for (int32_t sample = 0; sample < request.request.generate().num_samples; ++sample) {
    const std::vector<TokenId> tokens =
        FakeExecutor::Expected(world.options, request.request, sample, request.budget);
    if (std::ranges::count(tokens, poison) > 0) return true;
  }
  return false;
}

void ExpectSameLogprob(const TokenLogprob& a, const TokenLogprob& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.logprob, b.logprob);
  EXPECT_EQ(a.rank, b.rank);
}

// Expects all wanted log-probabilities of the prompt if `complete`, else the first of them.
void CheckPromptLogprobs(const World& world, const Expectation& request, bool complete) {
  const std::vector<PromptLogprob> want =
      FakeExecutor::ExpectedPromptLogprobs(world.options, request.request);
  const std::vector<PromptLogprob>& got = request.prompt_logprobs;
  if (complete) {
    ASSERT_EQ(got.size(), want.size());
  }
  ASSERT_LE(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].position, want[i].position);
    ExpectSameLogprob(got[i].chosen, want[i].chosen);
    ASSERT_EQ(got[i].top_logprobs.size(), want[i].top_logprobs.size());
    for (size_t k = 0; k < got[i].top_logprobs.size(); ++k) {
      ExpectSameLogprob(got[i].top_logprobs[k], want[i].top_logprobs[k]);
    }
  }
}

void CheckRead(const Expectation& request, FinishReason reason, bool poisoned) {
  if (reason == FinishReason::kCancelled || reason == FinishReason::kError) {
    EXPECT_TRUE(reason == FinishReason::kCancelled || poisoned || request.failed);
    EXPECT_FALSE(request.read.has_value());
    return;
  }
  EXPECT_EQ(reason, FinishReason::kStop);
  ASSERT_TRUE(request.read.has_value());
  const ReadValues want = FakeExecutor::ExpectedRead(request.request);
  EXPECT_EQ(request.read->values, want.values);
  EXPECT_EQ(request.read->log_sum_exp, want.log_sum_exp);
}

void CheckAnswers(const World& world) {
  for (const auto& [id, request] : world.expected) {
    SCOPED_TRACE("request " + std::to_string(id));
    const bool poisoned = IsPoisoned(world, request);
    ASSERT_EQ(std::ssize(request.finish), NumSamples(request.request));
    const FinishReason first = request.finish.at(0);
    CheckPromptLogprobs(world, request,
                        first == FinishReason::kStop || first == FinishReason::kLength);
    if (!request.request.generates()) {
      CheckRead(request, first, poisoned);
      continue;
    }
    for (const auto& [sample, reason] : request.finish) {
      const std::vector<TokenId> want =
          FakeExecutor::Expected(world.options, request.request, sample, request.budget);
      std::vector<TokenId> got;
      if (request.tokens.contains(sample)) got = request.tokens.at(sample);
      if (reason == FinishReason::kCancelled || reason == FinishReason::kError) {
        EXPECT_TRUE(reason == FinishReason::kCancelled || poisoned || request.failed);
        ASSERT_LE(got.size(), want.size());
        EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
        continue;
      }
      ASSERT_EQ(got, want);
      const auto& stops = request.request.generate().stop_token_ids;
      const bool stopped = !want.empty() &&
                           std::ssize(want) > request.request.generate().min_tokens &&
                           std::ranges::count(stops, want.back()) > 0;
      EXPECT_EQ(reason, stopped ? FinishReason::kStop : FinishReason::kLength);
    }
  }
}

// Drawn apart, so that the rest of the load is as without.
void UseHostTier(uint64_t seed, EngineConfig* config) {
  Random random(seed ^ 0x486f7374);
  SchedulerConfig& scheduler = config->scheduler;
  scheduler.prefix_caching = true;
  scheduler.num_states = 0;
  config->reads_whole_prompts = false;
  if (random.OneIn(2)) {  // so few blocks that most prefixes leave the device
    scheduler.num_kv_blocks =
        BlocksFor(scheduler.max_model_len) + static_cast<int32_t>(random.Between(0, 2));
  }
  const int64_t most = random.OneIn(3) ? 4 : 6 * scheduler.num_kv_blocks;
  scheduler.num_host_kv_blocks = static_cast<int32_t>(random.Between(1, most));
}

}  // namespace

LoadCounts RunRandomLoad(uint64_t seed, int32_t num_requests, Faults faults,
                         HostTierOfLoad host_tier) {
  World world(seed);
  world.faults = faults == Faults::kInjected;
  world.config = RandomConfig(&world.random);
  // A generator of its own decides, so that the other seeds make the same loads as before.
  if (Random own(~seed); own.OneIn(4)) UseAuto(&own, &world.config.scheduler);
  if (host_tier == HostTierOfLoad::kOn) UseHostTier(seed, &world.config);
  const SchedulerConfig scheduler = MakeSchedulerConfig(world.config).value();
  const StepBounds bounds = StepBoundsOf(scheduler.policies.retention, scheduler.max_model_len,
                                         scheduler.max_num_batched_tokens);
  world.options = {.num_kv_blocks = world.config.scheduler.num_kv_blocks,
                   .num_host_kv_blocks = world.config.scheduler.num_host_kv_blocks,
                   .num_states = world.config.scheduler.num_states,
                   .vocab_size = world.config.vocab_size,
                   .poison_token = world.random.OneIn(3) ? 49 : -1,
                   .preempt_every = static_cast<int32_t>(world.random.Between(0, 3)),
                   .discards_kv = true,
                   .reads_whole_prompts = world.config.reads_whole_prompts,
                   .max_step_tokens = bounds.max_tokens,
                   .max_own_blocks = bounds.max_own_blocks};
  RunWorkload(&world, num_requests);
  CheckAnswers(world);
  return world.counts;
}

}  // namespace skein::testing
