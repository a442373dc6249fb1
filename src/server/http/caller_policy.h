#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/server_config.h"

namespace skein {

// Decides which callers may ask for work, besides the check of keys. A web page can send requests
// to any address that its reader's browser reaches, including the loopback address. The fields
// Origin and Host tell such requests from a program's. A foreign name in Host means that a page
// made its own name resolve to this machine (DNS rebinding).

// Whether `host`, the field Host, names this server under ServerConfig::allowed_hosts.
bool HostIsAllowed(const ServerConfig& config, std::string_view host);

// The value of Access-Control-Allow-Origin for this request; empty: the field is not sent.
std::string AllowedOrigin(const ServerConfig& config, const HttpRequest& request);

// Checks the fields Host, Origin and Content-Type of a request for work. Refuses it with 403, or
// with 415 if its body comes from another origin and its type is not JSON: browsers ask for
// permission before they send JSON to another origin.
std::optional<HttpResponse> RefuseForeign(const ServerConfig& config, const HttpRequest& request);

}  // namespace skein
