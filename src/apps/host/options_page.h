#pragma once

#include <string>

#include "apps/cli_names.h"

namespace skein {

// Makes the page docs/options.md: every option of every command of `app`, from the options'
// definitions alone.
std::string OptionsPage(const CLI::App& app);

}  // namespace skein
