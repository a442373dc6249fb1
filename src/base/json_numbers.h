#pragma once

#include <string>
#include <string_view>

namespace skein {

// Returns the JSON text with every number in a form that all our readers accept. An integer beyond
// 64 bits becomes the nearest double; a number beyond the range of doubles becomes the largest one
// of its sign. simdjson and nlohmann refuse a whole file for one such number, but
// tokenizer_config.json has them: `model_max_length` is 10^30 for "no limit". Text that is not a
// JSON number stays, so that the reader refuses the file. Cost: one pass and one copy.
std::string WithReadableNumbers(std::string_view json);

}  // namespace skein
