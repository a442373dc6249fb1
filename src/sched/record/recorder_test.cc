#include "sched/record/recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/decode_set/stop_constants.h"
#include "sched/scheduler.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

using nlohmann::json;

// Results of the right sizes for a plan.
StepResults EmptyResults(const StepPlan& plan) {
  StepResults results;
  const auto count = [&](const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) {
      results.draws.resize(results.draws.size() + row.draws.size());
      if (row.read != nullptr) results.reads.emplace_back();
      if (!row.prompt_logprobs.tokens.empty()) results.prompt_logprobs.emplace_back();
    }
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) count(oneshot->rows);
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) count(decode->rows);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    count(mixed->prefills);
    count(mixed->decodes);
  }
  return results;
}

EngineConfig TightConfig(const char* preset) {
  EngineConfig config;
  if (const Preset* known = FindPreset(preset)) config.scheduler.policies = known->policies;
  if (preset == std::string_view("dynamic")) {  // not used by any preset
    config.scheduler.policies = FindPreset("vllm-fcfs")->policies;
    config.scheduler.policies.decode_set = DecodeSet::kDynamic;
    config.scheduler.dynamic_step_us = 1000;
  }
  if (preset == std::string_view("preempt-op")) {
    config.scheduler.policies = FindPreset("paged-fcfs")->policies;
    config.scheduler.policies.sharing = Sharing::kPreemptOp;
    config.scheduler.policies.order = Order::kSrjfCalibrated;
    config.scheduler.preemption.max_suspended_us = 1000;
  }
  config.vocab_size = 100;
  config.scheduler.max_model_len = 200;
  config.scheduler.num_kv_blocks = 12;
  config.scheduler.max_num_seqs = 5;
  config.scheduler.max_num_batched_tokens = 48;
  return config;
}

Request RandomRequest(Random* random) {
  Request request;
  request.prompt.assign(random->Between(1, 120), 1);
  request.prompt[0] = static_cast<TokenId>(random->Between(0, 3));
  request.generate().max_tokens = static_cast<int32_t>(random->Between(0, 60));
  request.generate().num_samples = static_cast<int32_t>(random->Between(1, 3));
  request.generate().stop_token_ids = {5};
  request.generate().min_tokens = static_cast<int32_t>(random->Between(0, 4));
  if (random->OneIn(4)) {
    request.generate().stop_token_ids.clear();
    request.generate().min_tokens = 0;
    request.generate().choices = {{1, 2, 3}};
    for (TokenId id = 4; id < 40; ++id) request.generate().choices.push_back({id});
  }
  if (random->OneIn(4)) request.output = LabelSpec{.tokens = {1}};
  if (random->OneIn(6)) request.output = ClassifySpec{};
  if (random->OneIn(3) && !std::holds_alternative<ClassifySpec>(request.output)) {
    request.prompt_logprobs = PromptLogprobsSpec{
        .start = static_cast<int32_t>(random->Between(0, std::ssize(request.prompt) - 1))};
  }
  request.priority = static_cast<int32_t>(random->Between(0, 1));
  if (random->OneIn(2)) request.slo_ttft_us = random->Between(1, 100);
  if (random->OneIn(3)) request.slo_tpot_us = random->Between(1, 1000);
  request.cache_salt = random->OneIn(3) ? ~uint64_t{0} : 0;
  if (random->OneIn(3)) request.user = random->OneIn(2) ? "\"\x01\xff" : "b";
  if (random->OneIn(3)) request.group = {static_cast<uint64_t>(random->Between(1, 5)), 10};
  if (request.generates() && random->OneIn(2)) request.generate().max_tokens = 1;
  return request;
}

// Runs a load with arrivals, cancellations and failed draws; returns the log.
std::string RecordRun(uint64_t seed, const char* preset) {
  Random random(seed);
  std::ostringstream log;
  SchedulerRecorder recorder(&log);
  EngineConfig engine = TightConfig(preset);
  if (preset == std::string("distserve")) {
    engine.scheduler.policies.order = Order::kSlackEdf;
    engine.scheduler.policies.batching = Batching::kSloAware;
    engine.scheduler.deadlines.default_slo_us = 1000;
    engine.scheduler.deadlines.slo_batch_tokens = 40;
    engine.scheduler.cost = {.step_us = 3, .token_us = 0.5, .pair_us = 0.01, .row_us = 1};
  }
  if (seed % 2 == 1) engine.scheduler.num_host_kv_blocks = 9;
  const SchedulerConfig config = MakeSchedulerConfig(engine).value();
  Scheduler scheduler(config, {&recorder});
  TimeUs now_us = 0;
  RequestId next_id = 0;
  RequestId num_requests = preset == std::string("auto") ? 20 : 40;
  while (next_id < 40 || !scheduler.empty()) {
    if (next_id == num_requests && scheduler.empty()) {  // a profile in a moment without requests
      scheduler.AdoptProfile({.step_us = 3, .token_us = 0.7, .pair_us = 0.01, .row_us = 1},
                             {.step_us = 3, .row_us = 0.1, .token_us = 0.3, .cache_tokens = 9.5},
                             now_us);
      num_requests = 40;
    }
    if (next_id < num_requests && !random.OneIn(3)) {
      Request request = RandomRequest(&random);
      if (Scheduler::CheckFits(config, request).ok()) {
        scheduler.Arrive(next_id++, std::move(request), now_us);
      }
    }
    if (random.OneIn(10)) scheduler.Cancel(random.Between(0, 40), now_us);
    if (random.OneIn(10)) scheduler.CancelSample(random.Between(0, 40), 1, now_us);
    const StepPlan* plan = scheduler.Plan(++now_us);
    if (plan == nullptr) continue;
    if (random.OneIn(2)) {  // the step is stopped, and other requests arrive meanwhile
      Request request = RandomRequest(&random);
      if (next_id < num_requests && Scheduler::CheckFits(config, request).ok()) {
        scheduler.Arrive(next_id++, std::move(request), now_us);
      }
      if (scheduler.Reconsider(now_us += random.Between(1, 500)) != StepFate::kGoesOn) continue;
    }
    StepResults results = EmptyResults(*plan);
    for (DrawResult& result : results.draws) {
      result.token.token = static_cast<TokenId>(random.Between(0, 99));
      result.finite = !random.OneIn(60);
    }
    for (ReadResult& result : results.reads) result.finite = !random.OneIn(10);
    for (PromptLogprobsResult& result : results.prompt_logprobs) result.finite = !random.OneIn(20);
    scheduler.Complete(&results, ++now_us);
  }
  return log.str();
}

template <typename Choice>
Choice Named(const json& name) {
  return ChoiceOf<Choice>(name.get<std::string>()).value();
}

StopOptions StopOptionsOf(const json& event) {
  StopOptions options;
  options.rule = Named<StopRule>(event["stop_rule"]);
  options.seed = event["stop_seed"];
  EXPECT_TRUE(SetStopConstants(event["stop_constants"].get<std::string>(), &options).ok());
  return options;
}

CostFit CostOf(const json& event) {
  const json& cost = event["cost"];
  return {cost[0], cost[1], cost[2], cost[3]};
}

DecodeFit DecodeCostOf(const json& event) {
  const json& cost = event["decode_cost"];
  return {cost[0], cost[1], cost[2], cost[3], cost[4], cost[5]};
}

SchedulerConfig ConfigOf(const json& event) {
  return {.policies = {.order = Named<Order>(event["order"]),
                       .batching = Named<Batching>(event["batching"]),
                       .sharing = Named<Sharing>(event["sharing"]),
                       .granularity = Named<Granularity>(event["preempt_granularity"]),
                       .decode_set = Named<DecodeSet>(event["decode_set"]),
                       .execution = Named<Execution>(event["execution"]),
                       .retention = Named<Retention>(event["retention"]),
                       .forests = event["forests"],
                       .max_decode_wait_us = event["max_decode_wait_us"]},
          .preemption = {.max_suspended_steps = event["max_suspended_steps"],
                         .max_suspended_us = event["max_suspended_us"],
                         .decode_steps = Named<DecodeSteps>(event["decode_steps"]),
                         .express_tokens = kBlockTokens * event["express_blocks"].get<int32_t>()},
          .jct = {.by = Named<Jct>(event["jct"]), .aging = event["aging"]},
          .deadlines = {.default_slo_us = event["default_slo_us"],
                        .max_late_us = event["max_late_us"],
                        .slo_batch_tokens = event["slo_batch_tokens"]},
          .prefix_groups = {.stop = StopOptionsOf(event),
                            .max_wait_us = event["stop_max_wait_us"],
                            .max_wait_stretch = event["stop_max_wait_stretch"]},
          .dynamic_step_us = event["dynamic_step_us"],
          .max_prefix_wait_us = event["max_prefix_wait_us"],
          .cost = CostOf(event),
          .decode_cost = DecodeCostOf(event),
          .num_kv_blocks = event["num_kv_blocks"],
          .num_host_kv_blocks = event["num_host_kv_blocks"],
          .max_model_len = event["max_model_len"],
          .max_num_seqs = event["max_num_seqs"],
          .max_num_batched_tokens = event["max_num_batched_tokens"],
          .num_adapters = event["num_adapters"],
          .kv_storage = event["contiguous_kv"] ? KvStorage::kContiguous : KvStorage::kPaged,
          .prefix_caching = event["prefix_caching"],
          .max_whole_prompt_len = event["max_whole_prompt_len"],
          .force_decode_path = event["force_decode_path"]};
}

Request RequestOf(const json& event) {
  Request request;
  request.prompt = event["prompt"].get<std::vector<TokenId>>();
  request.generate().max_tokens = event["max_tokens"];
  request.generate().min_tokens = event["min_tokens"];
  request.generate().stop_token_ids = event["stop_token_ids"].get<std::vector<TokenId>>();
  request.generate().choices = event["choices"].get<std::vector<std::vector<TokenId>>>();
  request.generate().num_samples = event["n"];
  if (event["output"] == "labels") request.output = LabelSpec{};
  if (event["output"] == "embedding") request.output = EmbedSpec{};
  if (event["output"] == "classes") request.output = ClassifySpec{};
  if (!event["prompt_logprob_start"].is_null()) {
    request.prompt_logprobs = PromptLogprobsSpec{.start = event["prompt_logprob_start"]};
  }
  request.priority = event["priority"];
  if (!event["slo_ttft_us"].is_null()) request.slo_ttft_us = event["slo_ttft_us"];
  if (!event["slo_tpot_us"].is_null()) request.slo_tpot_us = event["slo_tpot_us"];
  request.cache_salt = event["cache_salt"];
  request.adapter_id = event["adapter_id"];
  request.group = {event["group"], event["parent_prefix_len"]};
  for (const int byte : event["user"]) request.user += static_cast<char>(byte);
  return request;
}

// Feeds a fresh scheduler with the arrivals, cancellations and drawn tokens of the log, but not
// with its plans.
std::string Replay(const std::string& log) {
  std::istringstream in(log);
  std::ostringstream again;
  SchedulerRecorder recorder(&again);
  std::unique_ptr<Scheduler> scheduler;
  for (std::string line; std::getline(in, line);) {
    const json event = json::parse(line);
    const std::string kind = event["event"];
    if (kind == "start") {
      scheduler =
          std::make_unique<Scheduler>(ConfigOf(event), std::vector<SchedulerObserver*>{&recorder});
    } else if (kind == "profile") {
      scheduler->AdoptProfile(CostOf(event), DecodeCostOf(event), event["t"]);
    } else if (kind == "arrive") {
      scheduler->Arrive(event["id"], RequestOf(event), event["t"]);
    } else if (kind == "cancel" && event["sample"] < 0) {
      scheduler->Cancel(event["id"], event["t"]);
    } else if (kind == "cancel") {
      scheduler->CancelSample(event["id"], event["sample"], event["t"]);
    } else if (kind == "preempt") {
      EXPECT_NE(scheduler->Reconsider(event["t"]), StepFate::kGoesOn);
    } else if (kind == "plan" || kind == "resume") {
      EXPECT_NE(scheduler->Plan(event["t"]), nullptr);
    } else {
      StepResults results;
      for (const json& token : event["tokens"]) {
        DrawResult result;
        result.finite = !token.is_null();
        if (result.finite) result.token.token = token;
        results.draws.push_back(result);
      }
      for (const json& finite : event["reads"]) results.reads.push_back({{}, finite});
      for (const json& finite : event["prompt_logprobs"]) {
        results.prompt_logprobs.push_back({{}, finite});
      }
      scheduler->Complete(&results, event["t"]);
    }
  }
  return again.str();
}

TEST(SchedulerRecorder, ReplayingALogGivesTheSamePlans) {
  int num_with_resumes = 0, num_with_host_copies = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const char* preset :
         {"prelude", "vllm-fcfs", "request-level", "feather", "prefill-only", "sglang-lpm",
          "sglang-dfs-weight", "dynamic", "preempt-op", "distserve", "auto"}) {
      SCOPED_TRACE(preset + std::string(" seed ") + std::to_string(seed));
      const std::string log = RecordRun(seed, preset);
      EXPECT_NE(log.find("\"class\":\"mixed\""), std::string::npos);
      EXPECT_NE(log.find("\"event\":\"cancel\""), std::string::npos);
      const bool resumes = log.find("\"event\":\"resume\"") != std::string::npos;
      const bool is_auto = preset == std::string_view("auto");
      EXPECT_TRUE(!resumes || is_auto || preset == std::string_view("preempt-op"));
      EXPECT_EQ(log.find("\"event\":\"profile\"") != std::string::npos, is_auto);
      num_with_resumes += resumes;
      num_with_host_copies += log.find("\"host_copies\"") != std::string::npos;
      EXPECT_EQ(Replay(log), log);
    }
  }
  EXPECT_GT(num_with_resumes, 4);
  EXPECT_GT(num_with_host_copies, 20);
}

TEST(SchedulerRecorder, WritesRowsAndTokens) {
  std::ostringstream log;
  SchedulerRecorder recorder(&log);
  Scheduler scheduler(MakeSchedulerConfig(TightConfig("vllm-fcfs")).value(), {&recorder});
  Request request;
  request.prompt = {3, 4};
  request.generate().max_tokens = 1;
  scheduler.Arrive(6, request, 10);
  scheduler.Plan(11);
  StepResults results;
  results.draws.resize(1);
  results.draws[0].token.token = 8;
  scheduler.Complete(&results, 12);
  const std::string text = log.str();
  EXPECT_NE(text.find(R"({"event":"plan","t":11,"iteration":0,"class":"oneshot","copies":[],)"
                      R"("prefills":[[6,0,0,2,1,0,0]],"decodes":[]})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"event":"complete","t":12,"tokens":[8],"reads":[],)"
                      R"("prompt_logprobs":[]})"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace skein
