#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "skein/request.h"

namespace skein {

// Orders are fair between clients. A request's client is its user, else its group. nullopt: the
// request is a client of its own.
using Client = std::pair<std::string, uint64_t>;

inline std::optional<Client> ClientOf(const Request& request) {
  if (!request.user.empty()) return Client(request.user, 0);
  if (request.group.id != 0) return Client("", request.group.id);
  return std::nullopt;
}

}  // namespace skein
