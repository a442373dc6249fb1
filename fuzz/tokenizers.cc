#include "tokenizers.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/check.h"

namespace skein::fuzz {
namespace {

std::vector<std::unique_ptr<Tokenizer>> LoadAll() {
  std::vector<std::filesystem::path> folders;
  const auto root = std::filesystem::path(SKEIN_SOURCE_DIR) / "tests/data/tokenizers";
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  std::vector<std::unique_ptr<Tokenizer>> all;
  for (const auto& folder : folders) {
    auto tokenizer = Tokenizer::Load(folder.string());
    SKEIN_CHECK(tokenizer.ok());
    all.push_back(std::move(tokenizer).value());
  }
  return all;
}

}  // namespace

const Tokenizer& TokenizerOfTests(uint8_t number) {
  static const auto all = LoadAll();
  return *all[number % all.size()];
}

}  // namespace skein::fuzz
