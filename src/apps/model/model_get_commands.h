#pragma once

#include <CLI/CLI.hpp>

namespace skein {

// These add `skein model fetch`, which gets a known model, and `skein model convert`, which makes a
// model directory of a GGUF file.
void AddModelFetchCommand(CLI::App* model, int* exit_status);
void AddModelConvertCommand(CLI::App* model, int* exit_status);

}  // namespace skein
