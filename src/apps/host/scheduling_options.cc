#include "apps/host/scheduling_options.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/host/choice.h"
#include "apps/host/closest_name.h"
#include "apps/host/help.h"
#include "sched/decode_set/stop_constants.h"
#include "skein/presets.h"

namespace skein {
namespace {

constexpr int kMaxValue = 1 << 30;

// Adds an option whose value is in milliseconds, for a time in microseconds.
void AddMilliseconds(CLI::App* app, const std::string& name, TimeUs* time_us, int least,
                     const std::string& description) {
  constexpr TimeUs kMillisecondUs = 1000;
  app->add_option_function<int32_t>(
         name, [time_us](int32_t ms) { *time_us = kMillisecondUs * ms; }, description)
      ->check(CLI::Range(least, kMaxValue))
      ->default_str(std::to_string(*time_us / kMillisecondUs));
}

void AddPolicyOptions(CLI::App* app, SchedulingOptions* o) {
  const HelpGroup group(app, "Choices over the preset");
  AddChoice(app, "--order", &o->order,
            "The request that goes first: fcfs, fair, srjf or srjf-calibrated (shortest remaining "
            "job), edf, d-edf or s-edf (by deadline), lpm (longest cached prefix), dfs-weight "
            "(depth first over the tree of cached prefixes) or auto (by deadline where there is "
            "one, else srjf-calibrated, with a bound on each wait); default: the preset's");
  AddChoice(app, "--batching", &o->batching,
            "Prefill work of a step: single (one request), saturate (as many as keep the device "
            "busy), budget (as many as fit), slo-aware (as many as the first one's deadline "
            "allows) or auto (slo-aware where there is a deadline, else saturate); default: the "
            "preset's");
  AddChoice(app, "--sharing", &o->sharing,
            "How prefill and decode share the device: whole, chunked, or preempt-op or "
            "preempt-layer (a running prefill makes way for more urgent work); default: the "
            "preset's");
  AddChoice(app, "--decode-set", &o->decode_set,
            "Requests that join the running batch: static (none until it has ended), fill (as many "
            "as fit), dynamic (as many as memory and the time of a step allow) or "
            "prefix-homogeneous (the one that shares most with it first); default: the preset's");
  AddChoice(app, "--execution", &o->execution,
            "How prompts are computed: plain, or hybrid (all but attention in chunks, in little "
            "memory); default: the preset's");
  AddChoice(app, "--retention", &o->retention,
            "Keys and values of requests of one pass that are kept: all, prefix (the part that "
            "fits), value (of it what other requests share) or none; default: the preset's");
  app->add_option("--chunk-tokens", o->chunk_tokens,
                  "Tokens of one step, instead of the preset's chunk; from --max-num-seqs to "
                  "--max-num-batched-tokens. 0: the preset's")
      ->check(CLI::Range(0, kMaxValue));
  AddChoice(app, "--jct", &o->config.jct.by,
            "srjf, srjf-calibrated: a job's time by its missing tokens (proxy) or by the profile "
            "(model)");
  app->add_option("--aging", o->config.jct.aging,
                  "srjf, srjf-calibrated: seconds of work for a second of waiting")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  AddMilliseconds(app, "--dynamic-step-ms", &o->config.dynamic_step_us, 0,
                  "dynamic: the time of a decode step to aim at; 0: memory alone decides");
}

void AddPreemptionOptions(CLI::App* app, SchedulingOptions* o) {
  const HelpGroup group(app, "Preemption");
  PreemptionConfig* preemption = &o->config.preemption;
  AddChoice(app, "--preempt-granularity", &o->granularity,
            "Boundaries at which a running prefill stops: op-tile, op, layer, chunk (between its "
            "steps) or none; default: as --sharing says");
  app->add_option("--max-suspended-steps", preemption->max_suspended_steps,
                  "Stopped steps that keep their activations; beyond that the least "
                  "urgent one is computed again")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  AddMilliseconds(app, "--max-suspended-ms", &preemption->max_suspended_us, 1,
                  "After being stopped for so long in all a step goes on next and is stopped no "
                  "more, but by decodes that ask for a rate");
  AddChoice(app, "--decode-steps", &preemption->decode_steps,
            "Beside a long prompt, with --sharing preempt-*, decodes that ask for a rate take "
            "steps of their own (own), steps with chunks of the prompt (mixed) or what the cost "
            "model takes to be cheaper (by-cost)");
  app->add_option(
         "--express-tokens", preemption->express_tokens,
         "With --sharing preempt-*: KV memory, in tokens, that prompts leave free for what "
         "preempts them; at most an eighth of it")
      ->check(CLI::Range(0, kMaxValue))
      ->capture_default_str();
}

void AddDeadlineOptions(CLI::App* app, DeadlineConfig* deadlines) {
  const HelpGroup group(app, "Deadlines");
  AddMilliseconds(app, "--default-slo-ttft-ms", &deadlines->default_slo_us, 1,
                  "Deadlines: the time to the first token of requests that ask for none");
  AddMilliseconds(app, "--max-late-ms", &deadlines->max_late_us, 0,
                  "auto, d-edf, s-edf: how long a request that can no longer meet its deadline may "
                  "wait behind others; 0: for ever");
  app->add_option("--slo-batch-tokens", deadlines->slo_batch_tokens,
                  "slo-aware: tokens of a batch; docs/slo.md says how to choose")
      ->check(CLI::Range(1, kMaxValue))
      ->capture_default_str();
}

void AddPrefixGroupOptions(CLI::App* app, SchedulingOptions* o) {
  const HelpGroup group(app, "Decode set prefix-homogeneous");
  AddChoice(
      app, "--stop-rule", &o->stop_rule,
      "The rule by which prefix-homogeneous stops adding: model (default: by predicted "
      "throughput, from a profile), never, heuristic (knows nothing of "
      "throughput: if a full batch pays more than a pure one it loses much of fill's), bandit "
      "or q-learning");
  app->add_option("--stop-table", o->stop_table,
                  "The knowledge of a learning --stop-rule: read from this file if there is one, "
                  "written there at the end (see skein policy show)");
  app->add_option(
      "--stop-constants", o->stop_constants,
      "Constants of --stop-rule, name=value,...: max-lost, small-batch, "
      "max-lost-small, max-lost-peers, max-loss, min-gain, exploration, alpha, gamma, "
      "epsilon-start, epsilon-decay, epsilon-floor, learn (include/skein/stop_options.h)");
  app->add_option("--stop-seed", o->config.prefix_groups.stop.seed,
                  "Seed of q-learning's random decisions; the other rules draw nothing")
      ->capture_default_str();
  AddMilliseconds(app, "--stop-max-wait-ms", &o->config.prefix_groups.max_wait_us, 1,
                  "A request that has waited so long is next, whatever it shares and whatever "
                  "--stop-rule says, if --stop-max-wait-stretch is exceeded too");
  app->add_option("--stop-max-wait-stretch", o->config.prefix_groups.max_wait_stretch,
                  "and if so many times as many requests have joined since its arrival as waited "
                  "before it (first come, first served: 1); 0: the time alone counts")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
}

std::string CheckPreset(const std::string& name) {
  if (FindPreset(name) != nullptr) return "";
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  for (const PresetAlias& alias : kPresetAliases) names.emplace_back(alias.name);
  return "is '" + name + "', must be one of: " + ListOfPresets() + DidYouMean(name, names);
}

Status Needs(const char* member, const char* needed) {
  return {StatusCode::kInvalidArgument, std::string(member) + " needs " + needed, member};
}

// The policies of the preset, replaced by the choices that the options make.
Result<Policies> PoliciesOf(const SchedulingOptions& o) {
  const Preset* preset = FindPreset(o.preset);
  if (preset == nullptr) {
    return Status(StatusCode::kInvalidArgument, "preset " + CheckPreset(o.preset), "preset");
  }
  Policies policies = preset->policies;
  policies.order = o.order.value_or(policies.order);
  policies.batching = o.batching.value_or(policies.batching);
  policies.decode_set = o.decode_set.value_or(policies.decode_set);
  policies.execution = o.execution.value_or(policies.execution);
  policies.retention = o.retention.value_or(policies.retention);
  if (o.chunk_tokens != 0) policies.chunk_tokens = o.chunk_tokens;
  if (o.sharing) {
    policies.sharing = *o.sharing;
    policies.granularity = GranularityOf(*o.sharing);
  }
  if (!o.granularity) return policies;
  if (!Preempts(policies.sharing)) {
    return Needs("preempt_granularity", "a sharing that preempts: preempt-op or preempt-layer");
  }
  policies.granularity = *o.granularity;
  return policies;
}

}  // namespace

void AddPresetOption(CLI::App* app, const std::string& names, SchedulingOptions* o) {
  const HelpGroup group(app, "Scheduling");
  app->add_option(names, o->preset,
                  "Preset of the scheduler: auto (deadlines where requests name them, else the "
                  "shortest job, and no wait without a bound), prelude (fair between clients), "
                  "prefill-only (long prompts in little memory), "
                  "flow-prefill (deadlines; a running prefill makes way), feather (requests that "
                  "share a prefix decode together) or another of docs/scheduling.md; in all " +
                      ListOfPresets())
      ->check(CheckPreset)
      ->capture_default_str();
}

void AddChoiceOptions(CLI::App* app, SchedulingOptions* o) {
  AddPolicyOptions(app, o);
  AddPreemptionOptions(app, o);
  AddDeadlineOptions(app, &o->config.deadlines);
  AddPrefixGroupOptions(app, o);
}

Result<SchedulerConfig> SchedulerConfigOf(const SchedulingOptions& o) {
  SchedulerConfig config = o.config;
  SKEIN_ASSIGN_OR_RETURN(config.policies, PoliciesOf(o));
  const std::pair<const char*, bool> of_set[] = {{"stop_rule", o.stop_rule.has_value()},
                                                 {"stop_constants", !o.stop_constants.empty()}};
  for (const auto& [member, is_set] : of_set) {
    if (is_set && config.policies.decode_set != DecodeSet::kPrefixHomogeneous) {
      return Needs(member, "decode_set prefix-homogeneous");
    }
  }
  config.prefix_groups.stop.rule = o.stop_rule.value_or(config.prefix_groups.stop.rule);
  SKEIN_RETURN_IF_ERROR(SetStopConstants(o.stop_constants, &config.prefix_groups.stop));
  return config;
}

}  // namespace skein
