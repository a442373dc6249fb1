#pragma once

#include <string_view>

namespace skein {

// The page that the server shows at /: src/server/api/page/index.html, compiled into the server.
extern const std::string_view kPageHtml;

}  // namespace skein
