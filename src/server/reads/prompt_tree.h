#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "skein/request.h"

namespace skein {

// What prompts have in common at their heads, as a tree of runs of tokens. Each run counts once.
//
//   [ head of all ]--[ of a and b ]--[ a ]
//                 \              \--[ b ]
//                  \-[ c ]
class PromptTree {
 public:
  PromptTree() = default;
  // Of all that the prompts have in common.
  explicit PromptTree(const std::vector<const std::vector<TokenId>*>& prompts);
  // Of a head of `shared` tokens alone: behind it each prompt counts whole. `sizes`: of prompts.
  PromptTree(int32_t shared, const std::vector<int32_t>& sizes);

  int64_t num_tokens() const;
  // Tokens that were in the cache before any of these prompts was computed. `cached`
  // [prompts.size()]: how many tokens at its head each prompt found. Of a run, what every prompt
  // with it found was there; what one of them had to compute was computed for all.
  int64_t NumCached(const std::vector<int32_t>& cached) const;

 private:
  struct Run {
    int32_t begin = 0;  // in the prompts
    int32_t end = 0;
    size_t first = 0;  // the prompts with this run: order_[first, last)
    size_t last = 0;
  };

  void AddRuns(const std::vector<const std::vector<TokenId>*>& prompts, size_t first, size_t last,
               int32_t begin);

  std::vector<size_t> order_;  // prompts, sorted by their tokens
  std::vector<Run> runs_;
};

}  // namespace skein
