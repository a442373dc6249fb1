#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <new>
#include <system_error>

#include "apps/command_line.h"
#include "base/memory_reserve.h"

constexpr int kUsageError = 2;
constexpr int kMemoryError = 1;

int main(int argc, char** argv) {
  // Log messages go to standard error: standard output is for answers only.
  const auto standard_error = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", standard_error));
  int exit_status = 0;
  if (!skein::MemoryReserve::Keep()) {
    std::fprintf(stderr, "skein: there is not enough memory\n");
    return kMemoryError;
  }
  const auto app = skein::MakeCommandLine(&exit_status);
  try {
    app->parse(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "skein: there is not enough memory\n");
    return kMemoryError;
  } catch (const std::system_error& error) {  // of a thread
    std::fprintf(stderr, "skein: a thread cannot be started: %s\n", error.what());
    return kMemoryError;
  } catch (const CLI::ConfigError& error) {
    std::fprintf(stderr, "--config: %s: there is no such option\n", error.what());
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (const std::string why = skein::MisspelledCommand(*app, arguments); !why.empty()) {
      std::fprintf(stderr, "skein: %s\n", why.c_str());
      return kUsageError;
    }
    return app->exit(error) == 0 ? 0 : kUsageError;  // 0: help or the version
  }
  return exit_status;
}
