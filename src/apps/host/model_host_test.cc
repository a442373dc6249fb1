#include "apps/host/model_host.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace skein {
namespace {

// The runtime's options that this command line gives.
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
  EXPECT_EQ(with.dtype, "f32");
  EXPECT_EQ(with.quantization, "int8");
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

}  // namespace
}  // namespace skein
