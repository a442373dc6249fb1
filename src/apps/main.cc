#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "apps/command_line.h"
#include "base/memory_reserve.h"

constexpr int kMemoryError = 1;

int main(int argc, char** argv) {
  // Log messages go to standard error: standard output is for answers only.
  const auto standard_error = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", standard_error));
  if (!skein::MemoryReserve::Keep()) {
    std::fprintf(stderr, "skein: there is not enough memory\n");
    return kMemoryError;
  }
  return skein::RunCommandLine(argc, argv);
}
