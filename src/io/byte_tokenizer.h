#pragma once

#include <cstdint>
#include <string>

namespace skein {

// The smallest complete tokenizer in HuggingFace's format, for models without a tokenizer:
// byte-level BPE without merges, in which token b is byte b, and three special tokens.
inline constexpr int32_t kByteTokenizerEndOfText = 256;  // <|endoftext|>: bos, pad
inline constexpr int32_t kByteTokenizerImStart = 257;    // <|im_start|>
inline constexpr int32_t kByteTokenizerImEnd = 258;      // <|im_end|>: eos
inline constexpr int32_t kByteTokenizerVocabSize = 259;

std::string ByteTokenizerJson();        // tokenizer.json
std::string ByteTokenizerConfigJson();  // tokenizer_config.json, with a chat template (ChatML)

}  // namespace skein
