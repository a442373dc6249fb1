#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace skein {

// Appends the base64 of the bytes (RFC 4648, padded).
void AppendBase64(std::span<const std::byte> source, std::string* out);

}  // namespace skein
