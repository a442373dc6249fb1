#include <CLI/CLI.hpp>

#include "apps/host/choice.h"
#include "apps/host/device_choice.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "apps/host/model_host.h"
#include "cuda/kernels/args.h"
#include "server/decisions/decision_method_names.h"

namespace skein {

template <>
inline constexpr auto kChoiceNames<Pooling> =
    std::to_array<ChoiceName<Pooling>>({{"last", Pooling::kLast},
                                        {"mean", Pooling::kMean},
                                        {"cls", Pooling::kCls},
                                        {"splade", Pooling::kSplade}});

namespace {

constexpr int kThreadsMax = 1024;

// Returns an error message if `name` is not the name of a reading, otherwise an empty text.
std::string CheckReading(const std::string& name) {
  if (ReadingOf(name)) return "";
  return "is '" + name + "', must be " + kReadingsAllowed;
}

// Adds the options for loading the model and for its prompts.
void AddModelOptions(CLI::App* app, ModelHostOptions* o) {
  app->add_option(
         "MODEL", o->model,
         "A model directory, a fetched model (skein model fetch --list), or org/name in the "
         "local HuggingFace cache")
      ->required();
  const HelpGroup group(app, "Model");
  AddChoice(app, "--device", &o->device,
            "The device that computes: cpu, cuda (an NVIDIA GPU, in a program built with CUDA=1; "
            "measured on an H200) or cuda-emulated (its kernels on the processor, for trials "
            "with tiny models); docs/gpu.md");
  app->add_option("--tp", o->tp,
                  "GPUs that share each operator (tensor parallelism), of --device cuda or "
                  "cuda-emulated")
      ->check(CLI::Range(1, cuda::kMaxRanks))
      ->capture_default_str();
  AddChoice(app, "--dtype", &o->dtype, "Compute type: auto, bf16 or f32");
  AddChoice(
      app, "--quantization", &o->quantization,
      "Matrices of the layers: auto (as in the file), none, q8_0 (8 bits, with a scale for each "
      "32 numbers), int8 (with one for a row: faster, but moves probabilities more) or int4");
  app->add_option("--chat-template", o->chat_template,
                  "A Jinja chat template file to use instead of the model's own");
  app->add_option_function<std::string>(
         "--tool-call-parser", [o](const std::string& name) { o->tool_style = ToolStyleOf(name); },
         "The form in which the model calls tools: hermes, smollm, llama3_json, mistral or json. "
         "Default: as its chat template shows it")
      ->check(CLI::IsMember({"hermes", "smollm", "llama3_json", "mistral", "json"}));
  app->add_option_function<std::string>(
         "--reasoning-format",
         [o](const std::string& name) { o->separates_reasoning = name == "auto"; },
         "Where answers to chats have the model's reasoning: in fields of its own (auto) or in "
         "the content (none). A request's reasoning_format overrides it")
      ->check(CLI::IsMember({"auto", "none"}))
      ->default_str("auto");
  AddChoice(app, "--rerank-template", &o->rerank_template,
            "The text that a rerank puts query and document into: auto (Qwen3-Reranker's "
            "template for models with its name or its classes), qwen3 (that template for this "
            "model) or none");
  app->add_option("--decision-lora", o->decision_adapter,
                  "A LoRA adapter, as DIR or NAME=DIR, that answers the decisions asked of the "
                  "model; text is still the model's. Default: the adapter that comes along with a "
                  "fetched model; none: without it");
  app->add_option_function<std::string>(
         "--decision-reading",
         [o](const std::string& name) { o->decision_reading = ReadingOf(name); },
         "How answers to decisions are read, instead of what skein.decisions.json says: "
         "letters, words or similarity, with +calibrated or +permuted behind it")
      ->check(CheckReading)
      ->type_name("NAME");
  AddChoice(app, "--decision-prompt", &o->decision_prompt,
            "The prompt around their questions: chat, question or cue (docs/decisions.md)");
  AddChoice(app, "--pooling", &o->pooling,
            "Which hidden states become an embedding: last, mean or cls, instead of what the "
            "model's files say; with it language models without such files embed, too, and rerank "
            "by that. splade: sparse vectors by the head that predicts masked tokens");
}

// Adds the options for memory besides the weights, and for the way in which prompts use it.
void AddMemoryOptions(CLI::App* app, ModelHostOptions* o) {
  const HelpGroup group(app, "Memory");
  AddChoice(
      app, "--kv-cache-dtype", &o->kv_cache_dtype,
      "Type of keys and values: auto, the compute type, or int8: about half of bf16's memory, "
      "and less to read with long contexts. Not for encoders");
  app->add_option("--kv-cache-memory", o->kv_cache_memory,
                  "Memory for keys and values, such as 2GiB; default: chosen from what is free");
  app->add_option("--memory", o->memory,
                  "Instead of --kv-cache-memory: all that steps and cache take beside the weights. "
                  "A prompt of --max-model-len tokens comes first; the rest is the cache's. "
                  "Requests that wait, and log-probabilities of prompts, come on top. With GPUs: "
                  "their memory, of all together");
  app->add_option(
      "--kv-cache-file", o->kv_cache_file,
      "Keep keys and values in a new file at this path, of --kv-cache-memory bytes; the "
      "system puts those there that memory has no room for. The file has no name and "
      "goes with the process. Excludes --memory");
  app->add_option(
      "--kv-offload-memory", o->kv_offload_memory,
      "With GPUs: memory of the host, such as 32GiB, that keeps the blocks which the prefix "
      "cache evicts. A prompt that begins with them has them copied back");
  AddChoice(app, "--kv-storage", &o->kv_storage,
            "How keys and values are kept: paged, or contiguous: one sequence at a time "
            "(--max-num-seqs 1), of which nothing is kept");
  app->add_flag("--enable-prefix-caching", o->enable_prefix_caching,
                "Reuse the computed prefixes of earlier requests (on)");
  // A separate option, so that it has its own environment variable.
  app->add_flag("--no-enable-prefix-caching", o->no_enable_prefix_caching,
                "Compute every prompt whole");
}

// Adds the options for threads and for the largest request, step and queue.
void AddLimitOptions(CLI::App* app, ModelHostOptions* o) {
  const HelpGroup group(app, "Threads and limits");
  app->add_option("--threads", o->threads,
                  "Threads that compute; 0: one per processor that it may run on")
      ->check(CLI::Range(0, kThreadsMax))
      ->capture_default_str();
  app->add_flag("--pin-threads", o->pin_threads, "Bind each of them to a processor of its own");
  AddChoice(app, "--numa", &o->numa,
            "Where weights lie on a machine with several memory nodes: on the nodes in turn "
            "(interleave), whole on each node (replicate: with as many copies in memory), or "
            "where they are packed (off); auto: interleave if the system allows it, unless the "
            "process has a rule of its own (numactl)");
  app->add_option("--max-model-len", o->max_model_len,
                  "Tokens of prompt and output together; 0: the model's own limit, as far as the "
                  "KV memory holds it")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app->add_option("--max-num-seqs", o->max_num_seqs, "Continuations computed at once")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app->add_option("--max-num-batched-tokens", o->max_num_batched_tokens,
                  "Tokens of one step; default: 512, or as many as --max-num-seqs and the chunk of "
                  "the preset or of --chunk-tokens need. Encoders, and embeddings by mean or CLS "
                  "pooling, read their inputs whole in one step: by default up to 8192 tokens in a "
                  "step of their own, fewer where memory is short")
      ->check(CLI::Range(1, 1 << 24));
  app->add_option("--max-queued-requests", o->max_queued_requests,
                  "Requests that may wait; more are answered with 429")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app->add_option("--max-logprobs", o->max_logprobs, "Log-probabilities per token at most")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
}

// Adds the options for records, and switches that are only needed for comparisons.
void AddExperimentOptions(CLI::App* app, ModelHostOptions* o) {
  const HelpGroup group(app, "Experiments");
  app->add_option("--record", o->record, "Write the scheduler's events to this file, for replay");
  app->add_flag("--plain-attention", o->plain_attention,
                "For comparisons: attention reads a shared prefix for each request anew");
  app->add_flag("--force-decode-path", o->force_decode_path,
                "For comparisons: run one-token requests through the decode path");
}

}  // namespace

void AddModelHostOptions(CLI::App* app, ModelHostOptions* o) {
  AddModelOptions(app, o);
  AddLimitOptions(app, o);
  AddMemoryOptions(app, o);
  AddPresetOption(app, "--scheduling", &o->scheduling);
  AddChoiceOptions(app, &o->scheduling);
  AddExperimentOptions(app, o);
}

}  // namespace skein
