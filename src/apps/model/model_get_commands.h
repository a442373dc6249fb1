#pragma once

#include "apps/cli_names.h"

namespace skein {

// These functions add `skein model fetch`, which fetches a known model, and `skein model convert`,
// which makes a model directory from a GGUF file.
void AddModelFetchCommand(CLI::App* model, int* exit_status);
void AddModelConvertCommand(CLI::App* model, int* exit_status);

}  // namespace skein
