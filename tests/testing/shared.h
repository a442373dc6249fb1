#pragma once

// The place of test data that does not travel with the repository.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace skein::testing {

// The folder of real models, tokenizers and traces: SKEIN_SHARED, else ../shared.
inline std::string SharedDir() {
  const char* dir = std::getenv("SKEIN_SHARED");
  return dir != nullptr ? dir : SKEIN_SOURCE_DIR "/../shared";
}

inline bool HaveShared() { return std::filesystem::exists(SharedDir() + "/README.md"); }

// True in continuous integration, where nothing may be skipped.
inline bool InCi() { return std::getenv("CI") != nullptr; }

}  // namespace skein::testing

// First line of a test that needs the shared folder: skips without it, fails in CI.
#define SKEIN_REQUIRE_SHARED()                                                        \
  do {                                                                                \
    if (!::skein::testing::HaveShared()) {                                            \
      if (::skein::testing::InCi()) FAIL() << "no " << ::skein::testing::SharedDir(); \
      GTEST_SKIP() << "needs " << ::skein::testing::SharedDir();                      \
    }                                                                                 \
  } while (false)
