#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace skein {

// One way to compute sequences, compared with another: each prompt alone and whole.
struct IdentityCase {
  std::string name;
  int32_t compared = 0;   // answers
  int32_t different = 0;  // of these, in at least one bit
  std::string first;      // names the first answer that differs
};

struct IdentityOptions {
  // The prompts' lengths. The last is computed beside decodes, and cases with chunks of one token
  // leave out those that have more than `single_tokens`.
  std::vector<int32_t> prompt_tokens = {1, 5, 16, 33, 64, 90, 150, 300};
  int32_t single_tokens = 64;
  int32_t beside_tokens = 16;           // the longest prompt that is compared with another device
  std::string beside = "the emulator";  // its name
  int32_t decode_steps = 4;  // tokens at the end of each prompt that are decoded; at least 1
  uint64_t seed = 1;
};

// The runtime must hold steps of so many tokens, and so many KV blocks.
int32_t IdentityTokens(const IdentityOptions& options);
int32_t IdentityBlocks(const IdentityOptions& options);

// Computes random prompts alone and whole; then again, together, in chunks, behind a cached prefix,
// as forks and by decode steps, which run as graphs or launch by launch. An answer is the greedy
// token, log-probabilities of up to 1,024 tokens, and the logits of labels, which are a product of
// their own. Blocks hold NaN before they are used. A last case compares the prompts of at most
// `beside_tokens` tokens with those of another runtime, `beside`, unless it is null. REQUIRES:
// IdentityTokens and IdentityBlocks fit; the model is a decoder with a language model's head.
std::vector<IdentityCase> CheckIdentity(Runtime* runtime, const IdentityOptions& options,
                                        Runtime* beside = nullptr);

}  // namespace skein
