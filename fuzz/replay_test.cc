// Every input of corpus/ and regressions/ through its harness, and a few that are changed at
// random: regressions/ holds what once ended the process.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "harness.h"
#include "json_mutator.h"

namespace skein::fuzz {
namespace {

struct Harness {
  const char* name;
  void (*run)(Bytes data);
};

constexpr Harness kHarnesses[] = {
    {"chat_template", FuzzChatTemplate},
    {"decide_file", FuzzDecideFile},
    {"form", FuzzForm},
    {"gguf", FuzzGguf},
    {"grammar", FuzzGrammar},
    {"handover", FuzzHandover},
    {"http_connection", FuzzHttpConnection},
    {"http_head", FuzzHttpHead},
    {"json", FuzzJson},
    {"lora", FuzzLora},
    {"model_config", FuzzModelConfig},
    {"prompt_text", FuzzPromptText},
    {"routes", FuzzRoutes},
    {"safetensors", FuzzSafetensors},
    {"scheduler", FuzzScheduler},
    {"stop_table", FuzzStopTable},
    {"tokenizer_load", FuzzTokenizerLoad},
    {"tokenizer_text", FuzzTokenizerText},
    {"tool_calls", FuzzToolCalls},
};

std::vector<std::filesystem::path> FilesOf(const std::string& kind, const std::string& name) {
  const auto folder = std::filesystem::path(SKEIN_SOURCE_DIR) / "fuzz" / kind / name;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<uint8_t> Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One to four changes of single bytes or of runs.
std::vector<uint8_t> Mutate(std::vector<uint8_t> data, Random* random) {
  for (int64_t left = random->Between(1, 4); left > 0; --left) {
    const auto at = random->Between(0, std::ssize(data));
    const auto end = random->Between(at, std::min<int64_t>(std::ssize(data), at + 16));
    switch (data.empty() ? 2 : random->Between(0, 4)) {
      case 0:
        data[static_cast<size_t>(std::min(at, std::ssize(data) - 1))] ^=
            static_cast<uint8_t>(1 << random->Between(0, 7));
        break;
      case 1:
        data.erase(data.begin() + at, data.begin() + end);
        break;
      case 2:
        data.insert(data.begin() + at, static_cast<uint8_t>(random->Between(0, 255)));
        break;
      case 3: {
        const std::vector<uint8_t> run(data.begin() + at, data.begin() + end);
        data.insert(data.begin() + random->Between(0, std::ssize(data)), run.begin(), run.end());
        break;
      }
      default: {
        constexpr uint8_t kValues[] = {0, 1, 0x7F, 0x80, 0xFF};
        for (int64_t i = at; i < end; ++i) {
          data[static_cast<size_t>(i)] = kValues[random->Between(0, std::ssize(kValues) - 1)];
        }
      }
    }
  }
  return data;
}

// The number of changed inputs of each harness: SKEIN_FUZZ_ROUNDS, or a few.
int64_t NumRounds() {
  constexpr int64_t kFew = 300;
  const char* text = std::getenv("SKEIN_FUZZ_ROUNDS");
  return text != nullptr ? std::atoll(text) : kFew;
}

// An input is written to the file that SKEIN_FUZZ_INPUT names before it runs: the one that ends the
// process is then at hand.
void Keep(const std::vector<uint8_t>& data) {
  const char* path = std::getenv("SKEIN_FUZZ_INPUT");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data.data()), std::ssize(data));
}

class Replay : public ::testing::TestWithParam<Harness> {};

TEST_P(Replay, NoInputEndsTheProcess) {
  const Harness& harness = GetParam();
  const auto seeds = FilesOf("corpus", harness.name);
  EXPECT_FALSE(seeds.empty());
  auto files = FilesOf("regressions", harness.name);
  files.insert(files.end(), seeds.begin(), seeds.end());
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    const std::vector<uint8_t> data = Read(file);
    Keep(data);
    harness.run(data);
    // Beginnings, too: most readers stop where a seed is cut.
    for (size_t size = 0; size < data.size(); size += 1 + data.size() / 8) {
      harness.run(Bytes(data).first(size));
    }
  }
}

// Without a compiler that reports coverage: changes at random, the same in every run.
TEST_P(Replay, NoChangedSeedEndsTheProcess) {
  const Harness& harness = GetParam();
  std::vector<std::vector<uint8_t>> inputs;
  for (const auto& file : FilesOf("corpus", harness.name)) inputs.push_back(Read(file));
  ASSERT_FALSE(inputs.empty());
  Random random(1);
  const auto pick = [&] { return inputs[random.Between(0, std::ssize(inputs) - 1)]; };
  for (int64_t round = 0; round < NumRounds(); ++round) {
    std::vector<uint8_t> data = pick();
    const std::vector<uint8_t> other = pick();
    const std::string json = MutateJson(TextOf(data), TextOf(other), random.Bits());
    if (!json.empty() && !random.OneIn(4)) {
      data.assign(json.begin(), json.end());
    } else {
      data = Mutate(std::move(data), &random);
    }
    Keep(data);
    harness.run(data);
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(kHarnesses),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace skein::fuzz
