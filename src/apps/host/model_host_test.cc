#include "apps/host/model_host.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace skein {
namespace {

// The options of the runtime that this command line gives.
Result<CpuRuntimeOptions> Behind(const std::string& command_line) {
  CLI::App app;
  ModelHostOptions options;
  AddModelHostOptions(&app, &options);
  app.parse(command_line);
  return RuntimeOptionsOf(options);
}

TEST(ModelHost, OptionsReachTheRuntime) {
  const CpuRuntimeOptions without = Behind("model").value();
  EXPECT_TRUE(without.share_attention);
  EXPECT_EQ(without.kv_cache_bytes, 0);
  const CpuRuntimeOptions with =
      Behind(
          "model --plain-attention --dtype f32 --quantization int8 --threads 3 --max-model-len 77 "
          "--max-num-seqs 5 --max-num-batched-tokens 99 --kv-cache-memory 2KiB")
          .value();
  EXPECT_FALSE(with.share_attention);
  EXPECT_EQ(with.dtype, ComputeChoice::kF32);
  EXPECT_EQ(with.quantization, Quantization::kInt8);
  EXPECT_EQ(with.threads, 3);
  EXPECT_EQ(with.max_model_len, 77);
  EXPECT_EQ(with.max_num_seqs, 5);
  EXPECT_EQ(with.max_num_batched_tokens, 99);
  EXPECT_EQ(with.kv_cache_bytes, 2048);
  EXPECT_EQ(without.max_num_batched_tokens, 512);
  for (const auto& [options, tokens] : std::vector<std::pair<std::string, int>>{
           {"--scheduling distserve-cp2k", 2048},
           {"--scheduling distserve-cp8k", 8192},
           {"--scheduling distserve-cp8k --max-num-batched-tokens 9000", 9000},
           {"--chunk-tokens 700", 700},
           {"--chunk-tokens 70", 512},
           {"--max-num-seqs 600", 600}}) {
    EXPECT_EQ(Behind("model " + options).value().max_num_batched_tokens, tokens) << options;
  }
  EXPECT_EQ(Behind("model --memory 3KiB").value().memory_bytes, 3072);
  EXPECT_FALSE(Behind("model --memory much").ok());
}

// Names of choices are parsed once, before a model is loaded.
TEST(ModelHost, AWrongNameIsRefusedWithTheOptionAndWhatIsAllowed) {
  const auto refusal = [](const std::string& option) -> std::string {
    CLI::App app;
    ModelHostOptions options;
    AddModelHostOptions(&app, &options);
    try {
      app.parse("model " + option);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("--dtype int3"), "--dtype: is 'int3', must be one of: auto, bf16, f32");
  EXPECT_EQ(refusal("--quantization int3"),
            "--quantization: is 'int3', must be one of: auto, none, int8, q8_0, int4");
  EXPECT_EQ(refusal("--decision-reading runes"),
            "--decision-reading: is 'runes', must be letters, words, similarity or likelihood, "
            "with +calibrated or +permuted behind it");
  EXPECT_EQ(refusal("--decision-reading words+twice").substr(0, 39),
            "--decision-reading: is 'words+twice', m");
  EXPECT_EQ(refusal("--decision-prompt shout"),
            "--decision-prompt: is 'shout', must be one of: chat, question, cue");
  EXPECT_EQ(refusal("--rerank-template bge"),
            "--rerank-template: is 'bge', must be one of: auto, qwen3, none");
}

TEST(ModelHost, NamesBecomeChoices) {
  CLI::App app;
  ModelHostOptions options;
  AddModelHostOptions(&app, &options);
  app.parse(
      "model --decision-reading words+calibrated --decision-prompt cue --rerank-template qwen3");
  EXPECT_EQ(options.decision_reading, (NamedReading{Reading::kWords, true, false}));
  EXPECT_EQ(options.decision_prompt, PromptForm::kCue);
  EXPECT_EQ(options.rerank_template, RerankTemplate::kQwen3);
}

}  // namespace
}  // namespace skein
