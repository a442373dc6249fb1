#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "apps/host/choice.h"
#include "apps/host/model_choices.h"
#include "apps/model/model_cache.h"
#include "apps/read_file.h"
#include "base/random.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/kernels/quantization.h"
#include "model/config/config.h"
#include "server/json/json.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

struct QuantizationCommandOptions {
  QuantizationOptions compare;
  std::string model;
  std::string quantized;
  std::string text;
  std::string json;
  int32_t sequence_tokens = 128;
  int32_t num_sequences = 4;
};

Result<std::vector<std::vector<int32_t>>> Sequences(const QuantizationCommandOptions& options,
                                                    int32_t vocab) {
  std::vector<int32_t> tokens;
  if (options.text.empty()) {
    const int32_t count = options.sequence_tokens * options.num_sequences;
    for (int32_t i = 0; i < count; ++i) {
      tokens.push_back(std::min(static_cast<int32_t>(UniformAt(1, 0, i) * vocab), vocab - 1));
    }
  } else {
    SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.text));
    SKEIN_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(options.compare.model_dir));
    SKEIN_RETURN_IF_ERROR(tokenizer->Encode(text, /*add_special_tokens=*/true, &tokens));
    if (tokens.empty()) {
      return Status(StatusCode::kInvalidArgument, "--text " + options.text + " is empty", "text");
    }
  }
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < tokens.size(); i += options.sequence_tokens) {
    if (std::ssize(sequences) == options.num_sequences) break;
    const size_t end = std::min(i + options.sequence_tokens, tokens.size());
    sequences.emplace_back(tokens.begin() + static_cast<int64_t>(i),
                           tokens.begin() + static_cast<int64_t>(end));
  }
  return sequences;
}

Status RunQuantizationCommand(QuantizationCommandOptions options) {
  SKEIN_ASSIGN_OR_RETURN(options.compare.model_dir, FindModelDir(options.model));
  if (!options.quantized.empty()) {
    SKEIN_ASSIGN_OR_RETURN(options.compare.quantized_dir, FindModelDir(options.quantized));
  }
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(options.compare.model_dir));
  if (options.sequence_tokens > config.max_position) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--sequence-tokens is {}; the model reaches to {}",
                              options.sequence_tokens, config.max_position),
                  "sequence-tokens");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto sequences, Sequences(options, config.vocab_size));
  SKEIN_ASSIGN_OR_RETURN(const QuantizationReport r,
                         CompareQuantization(options.compare, sequences));
  fmt::print("{} positions of {}\n", r.num_positions,
             options.text.empty() ? "random tokens" : options.text);
  fmt::print("weights                      {:>12} bytes, quantized {} ({:.2f} times)\n",
             r.weight_bytes, r.quantized_weight_bytes,
             static_cast<double>(r.quantized_weight_bytes) / static_cast<double>(r.weight_bytes));
  fmt::print("log-probabilities differ by  {:>12.5f} on average, at most {:.4f}\n",
             r.mean_difference, r.max_difference);
  fmt::print("  weighted by probability    {:>12.5f}\n", r.expected_difference);
  fmt::print("KL divergence                {:>12.6f} nats on average, at most {:.5f}\n", r.mean_kl,
             r.max_kl);
  fmt::print("perplexity                   {:>12.3f}, quantized {:.3f}\n", r.perplexity,
             r.quantized_perplexity);
  fmt::print("same most probable token     {:>12.4f}\n", r.top1_agreement);
  Json json;
  json["date"] = BenchDate();
  json["model"] = options.model;
  json["text"] = options.text.empty() ? Json() : Json(options.text);
  json["quantization"] = NameOf(options.compare.quantization);
  json["kv_cache_dtype"] = NameOf(options.compare.kv_cache_dtype);
  json["quantized_model"] = options.quantized.empty() ? Json() : Json(options.quantized);
  json["positions"] = r.num_positions;
  json["perplexity"] = r.perplexity;
  json["quantized_perplexity"] = r.quantized_perplexity;
  json["weight_bytes"] = r.weight_bytes;
  json["quantized_weight_bytes"] = r.quantized_weight_bytes;
  json["mean_difference"] = r.mean_difference;
  json["max_difference"] = r.max_difference;
  json["expected_difference"] = r.expected_difference;
  json["mean_kl"] = r.mean_kl;
  json["max_kl"] = r.max_kl;
  json["top1_agreement"] = r.top1_agreement;
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchQuantizationCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<QuantizationCommandOptions>();
  CLI::App* app = bench->add_subcommand(
      "quantization",
      "How far int8 rows and weights of few bits move a model's probabilities from its own");
  AddModelDirOption(app, &options->model);
  app->add_option("--quantized", options->quantized,
                  "Another model, such as a GGUF file of it, that has the quantized weights");
  app->add_option("--text", options->text, "A file of text to read; without it, random tokens");
  app->add_option("--sequence-tokens", options->sequence_tokens, "The text is cut into so many")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--sequences", options->num_sequences, "Sequences at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  AddChoice(
      app, "--quantization", &options->compare.quantization,
      "The weights to compare with those in the compute type: auto, none, int8, q8_0 or int4");
  AddKvCacheOption(app, &options->compare.kv_cache_dtype);
  AddDtypeOption(app, &options->compare.dtype);
  AddThreadsOption(app, &options->compare.threads);
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunQuantizationCommand);
}

}  // namespace skein
