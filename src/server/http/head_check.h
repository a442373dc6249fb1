#pragma once

#include <string_view>

#include "base/result.h"

namespace skein {

// Checks the head of an HTTP/1.x request more strictly than a lenient parser. Two programs that
// read the same connection must agree where each message ends (RFC 9112, sections 2.2, 3.2, 5.1,
// 5.2, 6.1 and 6.3; "request smuggling"). Refuses
//
//   bare CR, bare LF and NUL, folded lines, space before the colon, names that are no tokens
//   a Transfer-Encoding other than one single "chunked", in HTTP/1.0, or beside a Content-Length
//   a Content-Length that is not one single number
//   HTTP/1.1 without exactly one Host, and a Host that is no valid host
//
// `head` ends with the empty line. The error kInvalidArgument says what was wrong.
Status CheckHead(std::string_view head);

// Whether `bytes`, the beginning of a head, can still become a valid head: the first byte begins a
// method, and every line ends with CR LF.
bool MayBecomeHead(std::string_view bytes);

}  // namespace skein
