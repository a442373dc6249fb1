#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/server_config.h"

namespace skein {

// Decides which callers may ask for work, apart from their keys. A web page can send requests to
// any address that its reader's browser reaches, the loopback address included. Its requests differ
// from a program's by their fields Origin and Host. A foreign name in Host means that the page's
// own name was made to resolve to this machine (DNS rebinding).

// Whether `host`, the field Host, names this server under ServerConfig::allowed_hosts.
bool HostIsAllowed(const ServerConfig& config, std::string_view host);

// The value of Access-Control-Allow-Origin for this request; empty: none.
std::string AllowedOrigin(const ServerConfig& config, const HttpRequest& request);

// The refusal of a request for work by its fields Host, Origin and Content-Type: 403, or 415 for a
// body from another origin that does not call itself JSON. Browsers ask before they send JSON.
std::optional<HttpResponse> RefuseForeign(const ServerConfig& config, const HttpRequest& request);

}  // namespace skein
