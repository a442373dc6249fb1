#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace skein::fuzz {

// The entries of the fuzzer, one each for a reader of foreign bytes, and for the scheduler. A
// harness ends the process (SKEIN_CHECK, a sanitizer) if the code under it breaks a promise, and
// returns otherwise. It keeps nothing that changes its answer to the next input.
//
// libFuzzer calls one of them from fuzzer_main.cc. replay_test.cc calls all of them with the files
// of corpus/ and regressions/, in a build by any compiler.
using Bytes = std::span<const uint8_t>;

void FuzzChatTemplate(Bytes data);
void FuzzDecideFile(Bytes data);
void FuzzForm(Bytes data);
void FuzzGguf(Bytes data);
void FuzzGrammar(Bytes data);
void FuzzHandover(Bytes data);
void FuzzHttpConnection(Bytes data);
void FuzzHttpHead(Bytes data);
void FuzzJson(Bytes data);
void FuzzLora(Bytes data);
void FuzzModelConfig(Bytes data);
void FuzzPromptText(Bytes data);
void FuzzRoutes(Bytes data);
void FuzzSafetensors(Bytes data);
void FuzzScheduler(Bytes data);
void FuzzStopTable(Bytes data);
void FuzzTokenizerLoad(Bytes data);
void FuzzTokenizerText(Bytes data);
void FuzzToolCalls(Bytes data);

inline std::string_view TextOf(Bytes data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// Inputs of two parts have this line between them.
inline constexpr std::string_view kPartMark = "\n-----\n";

// The parts before and behind the first mark; the second is empty without one.
inline std::pair<std::string_view, std::string_view> PartsOf(std::string_view text) {
  const size_t at = text.find(kPartMark);
  if (at == text.npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + kPartMark.size())};
}

// A number that follows from all bytes.
uint64_t SeedOf(Bytes data);

// A folder of this process in memory, for readers that take the name of a folder.
std::filesystem::path Folder();
// Writes one of its files anew.
void WriteFile(std::string_view name, std::string_view bytes);
void RemoveFile(std::string_view name);

}  // namespace skein::fuzz
