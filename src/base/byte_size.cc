#include "base/byte_size.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace skein {

Result<int64_t> ParseByteSize(const std::string& option, std::string_view text) {
  const Status bad(StatusCode::kInvalidArgument,
                   option + ": '" + std::string(text) +
                       "' is not an amount of memory: a number of bytes, or with KiB, MiB, GiB, "
                       "TiB (or KB, MB, GB, TB), at least 1 byte",
                   option);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return bad;
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c)
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  double scale = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = std::string_view("kmgt").find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos) return bad;
    if (rest == "ib" || rest.empty()) {
      scale = std::pow(1024.0, static_cast<double>(power + 1));
    } else if (rest == "b") {
      scale = std::pow(1000.0, static_cast<double>(power + 1));
    } else {
      return bad;
    }
  }
  if (number * scale < 1 || number * scale > 9e18) return bad;
  return static_cast<int64_t>(number * scale);
}

std::string FormatByteSize(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  int unit = 0;
  while (amount >= 1024 && unit < 4) amount /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", amount, kUnits[unit]);
  return text;
}

}  // namespace skein
