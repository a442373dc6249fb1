#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace skein {

// The page docs/options.md: every option of every command of `app`, from the definitions alone.
std::string OptionsPage(const CLI::App& app);

}  // namespace skein
