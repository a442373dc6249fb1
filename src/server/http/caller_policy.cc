#include "server/http/caller_policy.h"

#include <algorithm>

#include "server/json/api_error.h"

namespace skein {
namespace {

// The host without its port, and without the brackets of an IPv6 address.
std::string_view NameOf(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool IsLoopback(std::string_view name) {
  if (EqualsIgnoreCase(name, "localhost") || name == "::1") return true;
  constexpr std::string_view kSuffix = ".localhost";
  if (name.size() > kSuffix.size() &&
      EqualsIgnoreCase(name.substr(name.size() - kSuffix.size()), kSuffix)) {
    return true;
  }
  // Digits and dots only: a name may begin with "127.", too.
  return name.starts_with("127.") &&
         std::ranges::all_of(name, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

// The host and port of an origin; empty for "null" and origins without a host.
std::string_view AuthorityOf(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == origin.npos ? std::string_view() : origin.substr(scheme + 3);
}

bool IsSameOrigin(const HttpRequest& request, std::string_view origin) {
  const std::string_view authority = AuthorityOf(origin);
  return !authority.empty() && EqualsIgnoreCase(authority, request.Header("host"));
}

bool IsJson(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; \t"));
  constexpr std::string_view kSuffix = "+json";
  return EqualsIgnoreCase(type, "application/json") ||
         (type.size() > kSuffix.size() &&
          EqualsIgnoreCase(type.substr(type.size() - kSuffix.size()), kSuffix));
}

HttpResponse Forbid(const std::string& message) {
  return ErrorResponse(403, message, "permission_error", "foreign_caller");
}

}  // namespace

bool HostIsAllowed(const ServerConfig& config, std::string_view host) {
  const std::string_view name = NameOf(host);
  if (config.allowed_hosts.empty()) {
    // A key protects as well as the check of Host. An address outside the loopback has many names.
    if (!config.api_keys.empty() || !IsLoopback(config.host)) return true;
    return host.empty() || IsLoopback(name);  // HTTP/1.0 may lack Host; browsers always send it
  }
  return std::ranges::any_of(config.allowed_hosts, [&](const std::string& allowed) {
    return allowed == "*" || EqualsIgnoreCase(NameOf(allowed), name);
  });
}

std::string AllowedOrigin(const ServerConfig& config, const HttpRequest& request) {
  const std::string_view origin = request.Header("origin");
  if (origin.empty()) return {};
  for (const std::string& allowed : config.allowed_origins) {
    if (allowed == "*" || (allowed == kAutomaticOrigins && !config.api_keys.empty())) return "*";
    if (allowed == kAutomaticOrigins && IsLoopback(NameOf(AuthorityOf(origin)))) {
      return std::string(origin);
    }
    if (allowed == origin) return allowed;
  }
  return {};
}

std::optional<HttpResponse> RefuseForeign(const ServerConfig& config, const HttpRequest& request) {
  const std::string_view host = request.Header("host");
  if (!HostIsAllowed(config, host)) {
    return Forbid("the Host " + std::string(host) +
                  " is not a name of this server: see --allowed-hosts, or set a key");
  }
  const std::string_view origin = request.Header("origin");
  if (origin.empty() || IsSameOrigin(request, origin)) return std::nullopt;
  if (AllowedOrigin(config, request).empty()) {
    return Forbid("the origin " + std::string(origin) +
                  " may not use this server: see --allowed-origins, or set a key");
  }
  if (request.method == "POST" && !IsJson(request.Header("content-type"))) {
    return ErrorResponse(415, "a request from another origin must have a JSON content type",
                         "invalid_request_error", "unsupported_media_type");
  }
  return std::nullopt;
}

}  // namespace skein
