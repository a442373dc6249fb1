#pragma once

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace skein {

// From here on the log goes to standard error: standard output carries the answers alone. Lines
// below `level` are dropped.
inline void LogToStandardError(spdlog::level::level_enum level) {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::move(sink)));
  spdlog::set_level(level);
}

}  // namespace skein
