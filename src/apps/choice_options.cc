#include "apps/choice_options.h"

namespace skein {

void AddChoiceOptions(CLI::App* app, EngineConfig* config) {
  app->add_option("--execution", config->execution,
                  "How prompts are computed: plain, or hybrid (all but attention in chunks, in "
                  "little memory); default: the preset's");
  app->add_option("--retention", config->retention,
                  "What is kept of the keys and values of requests of one pass: all, prefix (the "
                  "part that fits), value (of it what other requests share) or none; default: the "
                  "preset's");
  app->add_option("--order", config->order,
                  "Who goes first: fcfs, fair, srjf or srjf-calibrated (shortest remaining job); "
                  "default: the preset's");
  app->add_option("--batching", config->batching,
                  "Prefill work of a step: single (one request) or budget (as many as fit); "
                  "default: the preset's");
  app->add_option("--sharing", config->sharing,
                  "How prefill and decode share the device: whole, chunked, or preempt-op or "
                  "preempt-layer (a running prefill makes way for more urgent work); default: the "
                  "preset's");
  app->add_option("--preempt-granularity", config->preempt_granularity,
                  "Where a running prefill stops: op-tile, op, layer, chunk (between its steps) or "
                  "none; default: as --sharing says");
  app->add_option("--max-suspended-steps", config->max_suspended_steps,
                  "Stopped steps that keep their activations; beyond that the least urgent one is "
                  "computed again")
      ->capture_default_str();
  app->add_option("--max-suspended-ms", config->max_suspended_ms,
                  "After being stopped for so long in all a step is stopped no more")
      ->capture_default_str();
  app->add_option("--jct", config->jct,
                  "srjf: a job's time by its missing tokens (proxy) or by the profile (model)")
      ->capture_default_str();
  app->add_option("--aging", config->aging,
                  "srjf: seconds of work that a second of waiting counts for")
      ->capture_default_str();
}

}  // namespace skein
