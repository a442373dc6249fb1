#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::fuzz {

// Changes one value of a JSON part of `input` (see harness.h), or of the JSON header of a
// safetensors part, whose length is then mended: by a value that tends to be wrong, by a part of
// `other`, by a repetition, a removal, or a move to another place. Empty: there is no such part.
// Everything follows from `seed`.
std::string MutateJson(std::string_view input, std::string_view other, uint64_t seed);

}  // namespace skein::fuzz
