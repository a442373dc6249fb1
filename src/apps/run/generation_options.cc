#include "apps/run/generation_options.h"

#include <CLI/CLI.hpp>

#include "apps/host/help.h"

namespace skein {

void AddGenerationOptions(CLI::App* app, GenerationOptions* o) {
  const HelpGroup group(app, "Generation");
  app->add_option("--max-tokens", o->max_tokens, "Tokens at most; default: what fits");
  app->add_option("--temperature", o->temperature, "0: the most likely token");
  app->add_option("--top-p", o->top_p, "Keep the most likely tokens of this mass");
  app->add_option("--top-k", o->top_k, "Keep so many of the most likely tokens");
  app->add_option("--min-p", o->min_p, "Drop tokens below this share of the likeliest");
  app->add_option("--seed", o->seed, "Seed of the draws");
  app->add_option("--stop", o->stop, "Stop strings")->expected(1, 16);
  app->add_flag("--ignore-eos", o->ignore_eos, "Go on after the end-of-text token");
}

Json RequestFields(const GenerationOptions& options) {
  Json fields = Json::object();
  if (options.max_tokens) fields["max_tokens"] = *options.max_tokens;
  if (options.temperature) fields["temperature"] = *options.temperature;
  if (options.top_p) fields["top_p"] = *options.top_p;
  if (options.min_p) fields["min_p"] = *options.min_p;
  if (options.top_k) fields["top_k"] = *options.top_k;
  if (options.seed) fields["seed"] = *options.seed;
  if (!options.stop.empty()) fields["stop"] = options.stop;
  if (options.ignore_eos) fields["ignore_eos"] = true;
  return fields;
}

}  // namespace skein
