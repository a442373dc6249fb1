#include "base/check.h"
#include "harness.h"
#include "server/http/head_check.h"

namespace skein::fuzz {
namespace {}  // namespace

// Every beginning of a head that is accepted may become a head, and a further field without a
// meaning for the message's length changes nothing.
void FuzzHttpHead(Bytes data) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::string_view text = TextOf(data);
  (void)MayBecomeHead(text);
  const size_t end = text.find(kEnd);
  if (end == text.npos) return;
  const std::string head(text.substr(0, end + kEnd.size()));
  // The parser reads the line of the request, whose first byte is checked here alone.
  if (!CheckHead(head).ok() || !MayBecomeHead(std::string_view(head).substr(0, 1))) return;
  for (size_t size = 1; size <= head.size(); ++size) {
    SKEIN_CHECK(MayBecomeHead(std::string_view(head).substr(0, size)));
  }
  const std::string longer = head.substr(0, head.size() - 2) + "X-Other: 1\r\n\r\n";
  SKEIN_CHECK(CheckHead(longer).ok());
  // A second Host is one too many.
  const std::string again = head.substr(0, head.size() - 2) + "Host: a\r\n\r\n";
  const size_t line = head.find("\r\n");
  if (head.substr(0, line).ends_with("HTTP/1.1")) SKEIN_CHECK(!CheckHead(again).ok());
}

}  // namespace skein::fuzz
