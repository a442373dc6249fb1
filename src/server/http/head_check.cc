#include "server/http/head_check.h"

#include <algorithm>
#include <string>

#include "server/http/http_message.h"

namespace skein {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kLengthDigitsMax = 18;  // keeps a length below 2^63

struct HeadFields {
  std::string_view transfer_encoding, content_length, host;
  int num_transfer_encodings = 0, num_content_lengths = 0, num_hosts = 0;
};

Status Refuse(const std::string& message) {
  return {StatusCode::kInvalidArgument, "this is not HTTP/1.1: " + message};
}

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The characters of methods and names (RFC 9110, section 5.6.2).
bool IsTokenChar(char c) {
  return IsAlphanumeric(c) ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kLengthDigitsMax &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A host name, an address or an address in brackets, with or without a port. No user, no path, no
// list.
bool IsHost(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) ||
           std::string_view("-._~%:[]!$&'()*+;=").find(c) != std::string_view::npos;
  });
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Status ReadField(std::string_view line, HeadFields* fields) {
  if (line.front() == ' ' || line.front() == '\t')
    return Refuse("a field is folded over two lines");
  const size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) return Refuse("a line of the head has no name");
  const std::string_view name = line.substr(0, colon);
  if (!std::ranges::all_of(name, IsTokenChar)) return Refuse("a field's name is not a token");
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (EqualsIgnoreCase(name, "transfer-encoding")) {
    fields->transfer_encoding = value;
    ++fields->num_transfer_encodings;
  } else if (EqualsIgnoreCase(name, "content-length")) {
    fields->content_length = value;
    ++fields->num_content_lengths;
  } else if (EqualsIgnoreCase(name, "host")) {
    fields->host = value;
    ++fields->num_hosts;
  }
  return Status::Ok();
}

Status CheckFields(const HeadFields& fields, bool http10) {
  if (fields.num_hosts > 1 || (fields.num_hosts == 0 && !http10)) {
    return Refuse("it must have one Host");
  }
  if (!IsHost(fields.host)) return Refuse("Host is not a host");
  if (fields.num_transfer_encodings > 0) {
    if (http10) return Refuse("Transfer-Encoding does not exist in HTTP/1.0");
    if (fields.num_content_lengths > 0) {
      return Refuse("Transfer-Encoding and Content-Length exclude each other");
    }
    if (fields.num_transfer_encodings > 1 ||
        !EqualsIgnoreCase(fields.transfer_encoding, "chunked")) {
      return Refuse("Transfer-Encoding must be chunked alone");
    }
  }
  if (fields.num_content_lengths == 0) return Status::Ok();
  if (fields.num_content_lengths > 1 || !IsNumber(fields.content_length)) {
    return Refuse("Content-Length must be one number");
  }
  return Status::Ok();
}

}  // namespace

Status CheckHead(std::string_view head) {
  HeadFields fields;
  bool http10 = false;
  for (bool first = true;; first = false) {
    const size_t end = head.find(kLineEnd);
    if (end == head.npos) return Refuse("the head has no end");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) {
      return Refuse("a line of the head holds CR, LF or NUL");
    }
    if (first) {
      http10 = line.ends_with(" HTTP/1.0");
      continue;
    }
    if (line.empty()) return CheckFields(fields, http10);
    SKEIN_RETURN_IF_ERROR(ReadField(line, &fields));
  }
}

bool MayBecomeHead(std::string_view bytes) {
  if (!bytes.empty() && !IsTokenChar(bytes.front())) return false;
  for (size_t at = bytes.find('\n'); at != bytes.npos; at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return false;
  }
  return true;
}

}  // namespace skein
