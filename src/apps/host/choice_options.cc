#include "apps/host/choice_options.h"

#include "apps/host/help.h"

namespace skein {
namespace {

void AddPolicyOptions(CLI::App* app, EngineConfig* config) {
  const HelpGroup group(app, "Choices over the preset");
  app->add_option("--order", config->order,
                  "The request that goes first: fcfs, fair, srjf or srjf-calibrated (shortest "
                  "remaining job), edf, d-edf or s-edf (by deadline), lpm (longest cached prefix) "
                  "or dfs-weight (depth first over the tree of cached prefixes); default: the "
                  "preset's");
  app->add_option("--batching", config->batching,
                  "Prefill work of a step: single (one request), saturate (as many as keep the "
                  "device busy), budget (as many as fit) or slo-aware (as many as the first one's "
                  "deadline allows); default: the preset's");
  app->add_option("--sharing", config->sharing,
                  "How prefill and decode share the device: whole, chunked, or preempt-op or "
                  "preempt-layer (a running prefill makes way for more urgent work); default: the "
                  "preset's");
  app->add_option("--decode-set", config->decode_set,
                  "Requests that join the running batch: static (none until it has ended), fill "
                  "(as many as fit), dynamic (as many as memory and the time of a step allow) or "
                  "flock (the one that shares most with it first); default: the preset's");
  app->add_option("--execution", config->execution,
                  "How prompts are computed: plain, or hybrid (all but attention in chunks, in "
                  "little memory); default: the preset's");
  app->add_option("--retention", config->retention,
                  "Keys and values of requests of one pass that are kept: all, prefix (the part "
                  "that fits), value (of it what other requests share) or none; default: the "
                  "preset's");
  app->add_option("--chunk-tokens", config->chunk_tokens,
                  "Tokens of one step, instead of the preset's chunk; from --max-num-seqs to "
                  "--max-num-batched-tokens. 0: the preset's")
      ->check(CLI::Range(0, 1 << 30));
  app->add_option("--jct", config->jct,
                  "srjf, srjf-calibrated: a job's time by its missing tokens (proxy) or by the "
                  "profile (model)")
      ->capture_default_str();
  app->add_option("--aging", config->aging,
                  "srjf, srjf-calibrated: seconds of work for a second of waiting, 0 to 100")
      ->capture_default_str();
  app->add_option("--dynamic-step-ms", config->dynamic_step_ms,
                  "dynamic: the time of a decode step to aim at; 0: memory alone decides")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
}

void AddPreemptionOptions(CLI::App* app, EngineConfig* config) {
  const HelpGroup group(app, "Preemption");
  app->add_option("--preempt-granularity", config->preempt_granularity,
                  "Boundaries at which a running prefill stops: op-tile, op, layer, chunk (between "
                  "its steps) or none; default: as --sharing says");
  app->add_option("--max-suspended-steps", config->max_suspended_steps,
                  "Stopped steps that keep their activations, 1 to 64; beyond that the least "
                  "urgent one is computed again")
      ->capture_default_str();
  app->add_option("--max-suspended-ms", config->max_suspended_ms,
                  "After being stopped for so long in all a step goes on next and is stopped no "
                  "more, but by decodes that ask for a rate")
      ->capture_default_str();
  app->add_option(
      "--decode-steps", config->decode_steps,
      "Beside a long prompt, with --sharing preempt-*, decodes that ask for a rate take "
      "steps of their own (own), steps with chunks of the prompt (mixed) or what the "
      "cost model takes to be cheaper (by-cost, the default)");
  app->add_option(
         "--express-tokens", config->express_tokens,
         "With --sharing preempt-*: KV memory, in tokens, that prompts leave free for what "
         "preempts them; at most an eighth of it")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
}

void AddDeadlineOptions(CLI::App* app, EngineConfig* config) {
  const HelpGroup group(app, "Deadlines");
  app->add_option("--default-slo-ttft-ms", config->default_slo_ttft_ms,
                  "Deadlines: the time to the first token of requests that ask for none")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app->add_option("--max-late-ms", config->max_late_ms,
                  "d-edf, s-edf: how long a request that can no longer meet its deadline may wait "
                  "behind others; 0: for ever")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app->add_option("--slo-batch-tokens", config->slo_batch_tokens,
                  "slo-aware: tokens of a batch; docs/slo.md says how to choose")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
}

}  // namespace

void AddPresetOption(CLI::App* app, const std::string& names, std::string* preset) {
  const HelpGroup group(app, "Scheduling");
  app->add_option(names, *preset,
                  "Preset of the scheduler: prelude (prefixes that requests share are computed "
                  "once, fair between clients), prefill-only (long prompts in little memory), "
                  "flow-prefill (deadlines; a running prefill makes way), feather (requests that "
                  "share a prefix decode together) or another of docs/scheduling.md: "
                  "request-level, paged-fcfs (distserve), chunked-fcfs (vllm-fcfs, nano-vllm), "
                  "sglang-lpm, sglang-dfs-weight, distserve-cp2k, distserve-cp8k, layer-level")
      ->capture_default_str();
}

void AddChoiceOptions(CLI::App* app, EngineConfig* config) {
  AddPolicyOptions(app, config);
  AddPreemptionOptions(app, config);
  AddDeadlineOptions(app, config);
}

void AddFlockOptions(CLI::App* app, EngineConfig* config, std::string* table) {
  const HelpGroup group(app, "Decode set flock");
  app->add_option("--flock-stop", config->flock_stop,
                  "The rule by which flock stops adding: never, heuristic (knows nothing of "
                  "throughput: if a full batch pays more than a pure one it loses much of fill's), "
                  "bandit (default) or q-learning");
  app->add_option("--flock-table", *table,
                  "The knowledge of a learning --flock-stop: read from this file if there is one, "
                  "written there at the end (see skein policy show)");
  app->add_option("--flock-by", config->flock_by,
                  "How flock compares: prefix (default), or for comparisons radix (token by token) "
                  "or user (requests of one user share a prefix: an oracle)");
  app->add_option(
      "--flock-constants", config->flock_constants,
      "Constants of --flock-stop, name=value,...: max-lost, small-batch, "
      "max-lost-small, max-lost-peers, max-loss, exploration, alpha, gamma, "
      "epsilon-start, epsilon-decay, epsilon-floor, learn. If prefixes outnumber "
      "the cache, max-loss=1 may gain; elsewhere it may lose, as docs/results/feather.md "
      "shows");
  app->add_option("--flock-seed", config->flock_seed,
                  "Seed of q-learning's random decisions; the other rules draw nothing")
      ->capture_default_str();
  app->add_option("--flock-max-wait-ms", config->flock_max_wait_ms,
                  "How long others may pass a request by that shares little, with flock")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
}

}  // namespace skein
