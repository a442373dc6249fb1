#pragma once

#include <string_view>

namespace skein {

// The page that the server shows at /: src/server/page/index.html, taken in when the server is
// built.
extern const std::string_view kPageHtml;

}  // namespace skein
