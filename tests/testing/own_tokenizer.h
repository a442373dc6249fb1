#pragma once

// The tokenizers that lie in this repository.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "text/tokenizer.h"

namespace skein::testing {

inline std::string OwnTokenizerFolder(const std::string& name) {
  return std::string(SKEIN_SOURCE_DIR) + "/tests/data/tokenizers/" + name;
}

inline std::unique_ptr<Tokenizer> LoadOwnTokenizer(const std::string& name) {
  auto tokenizer = Tokenizer::Load(OwnTokenizerFolder(name));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

}  // namespace skein::testing
