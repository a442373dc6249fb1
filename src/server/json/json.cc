#include "server/json/json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

namespace skein {
namespace {

// The error of a text with a costly shape; empty if the shape is allowed. The text need not be
// valid JSON: the parser's values are never deeper or wider than the values counted here.
std::string ShapeError(std::string_view text) {
  std::vector<int64_t> num_members;  // of the values not closed yet, outermost first
  int64_t lookups = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      num_members.push_back(0);
      if (num_members.size() > kJsonDepthMax) {
        return fmt::format("values must be nested at most {} deep", kJsonDepthMax);
      }
    } else if ((c == '}' || c == ']') && !num_members.empty()) {
      num_members.pop_back();
    } else if (c == ':' && !num_members.empty()) {
      lookups += ++num_members.back();
      if (lookups > kJsonLookupsMax) return "its objects have too many members";
    }
  }
  return {};
}

// Builds no value; records where and why the text is not JSON.
class ErrorFinder final : public nlohmann::json_sax<Json> {
 public:
  const std::string& error() const { return error_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ..."
    std::string_view what = error.what();
    const size_t colon = what.find(": ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    error_ = fmt::format("at byte {}: {}", position, what.substr(0, kShownBytesMax));
    return false;
  }

 private:
  static constexpr size_t kShownBytesMax = 200;  // the message quotes the bytes that were read last
  std::string error_;
};

}  // namespace

std::optional<Json> ParseJson(std::string_view text, std::string* why) {
  std::string error = ShapeError(text);
  if (error.empty()) {
    Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (!value.is_discarded()) return value;
    if (why != nullptr) {
      ErrorFinder finder;
      (void)Json::sax_parse(text.begin(), text.end(), &finder);
      error = finder.error();
    }
  }
  if (why != nullptr) *why = std::move(error);
  return std::nullopt;
}

bool AreStrings(const Json& value, size_t max_count) {
  return value.is_array() && !value.empty() && value.size() <= max_count &&
         std::ranges::all_of(value, [](const Json& item) { return item.is_string(); });
}

bool AreTexts(const Json* value, size_t max_count) {
  return value != nullptr && (value->is_string() || AreStrings(*value, max_count));
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace skein
