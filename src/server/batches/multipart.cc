#include "server/batches/multipart.h"

#include <optional>
#include <utility>

#include "server/http/http_message.h"

namespace skein {
namespace {

constexpr size_t kPartsMax = 64;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The value of the parameter `name` in a header's value: a token or a quoted text. Unset if there
// is none.
std::optional<std::string> ParameterOf(std::string_view value, std::string_view name) {
  size_t at = value.find(';');
  while (at != std::string_view::npos) {
    value.remove_prefix(at + 1);
    const size_t equals = value.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = Trimmed(value.substr(0, equals));
    value.remove_prefix(equals + 1);
    std::string text;
    size_t end = 0;
    if (!value.empty() && value.front() == '"') {
      for (end = 1; end < value.size() && value[end] != '"'; ++end) {
        if (value[end] == '\\' && end + 1 < value.size()) ++end;
        text += value[end];
      }
      end = value.find(';', end);
    } else {
      end = value.find(';');
      text = std::string(Trimmed(value.substr(0, end)));
    }
    if (EqualsIgnoreCase(key, name)) return text;
    at = end;
  }
  return std::nullopt;
}

Status Malformed(const std::string& what) {
  return {StatusCode::kInvalidArgument, "the body is no multipart/form-data: " + what};
}

// Reads one part: its head, an empty line, its content.
Result<FormPart> ReadPart(std::string_view part) {
  const size_t end_of_head = part.find("\r\n\r\n");
  if (end_of_head == std::string_view::npos) return Malformed("a part has no end of its head");
  FormPart result;
  std::string_view head = part.substr(0, end_of_head + 2);
  bool named = false;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!EqualsIgnoreCase(Trimmed(line.substr(0, colon)), "content-disposition")) continue;
    const std::string_view value = line.substr(colon + 1);
    const auto name = ParameterOf(value, "name");
    if (!name) return Malformed("a part has no name");
    named = true;
    result.name = *name;
    result.filename = ParameterOf(value, "filename").value_or("");
  }
  if (!named) return Malformed("a part has no Content-Disposition");
  result.content = part.substr(end_of_head + 4);
  return result;
}

}  // namespace

Result<std::vector<FormPart>> ParseForm(std::string_view content_type, std::string_view body) {
  const std::string_view type = Trimmed(content_type.substr(0, content_type.find(';')));
  if (!EqualsIgnoreCase(type, "multipart/form-data")) {
    return Status(StatusCode::kInvalidArgument,
                  "a file is uploaded as multipart/form-data with the fields file and purpose");
  }
  const std::string boundary = ParameterOf(content_type, "boundary").value_or("");
  if (boundary.empty()) return Malformed("its content type names no boundary");
  // Each delimiter stands at the beginning of a line; the first delimiter may begin the body.
  const std::string first = "--" + boundary;
  const std::string further = "\r\n" + first;
  size_t begin = body.find(first);
  if (begin != 0 && (begin = body.find(further)) != std::string_view::npos) begin += 2;
  if (begin == std::string_view::npos) return Malformed("it does not hold its boundary");
  body.remove_prefix(begin + first.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    const size_t line_end = body.find("\r\n");
    const size_t end = body.find(further, line_end == std::string_view::npos ? 0 : line_end);
    if (line_end == std::string_view::npos || end == std::string_view::npos) {
      return Malformed("its last boundary is missing");
    }
    if (parts.size() == kPartsMax) return Malformed("it has more than 64 parts");
    const size_t part = line_end + 2;
    // In a part with no header fields, the line end before the content is also the one before the
    // delimiter.
    SKEIN_ASSIGN_OR_RETURN(FormPart read, ReadPart(body.substr(part, end < part ? 0 : end - part)));
    parts.push_back(std::move(read));
    body.remove_prefix(end + further.size());
  }
  return parts;
}

}  // namespace skein
