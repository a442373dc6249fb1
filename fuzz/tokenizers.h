#pragma once

#include <cstdint>

#include "text/tokenizer.h"

namespace skein::fuzz {

// One of the tokenizers of tests/data/tokenizers, loaded once for the process: `number` modulo
// their count, in the order of their names.
const Tokenizer& TokenizerOfTests(uint8_t number);

}  // namespace skein::fuzz
