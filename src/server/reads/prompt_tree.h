#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "skein/request.h"

namespace skein {

// The common beginnings of prompts, as a tree of runs of tokens. Each run counts once.
//
//   [ head of all ]--[ of a and b ]--[ a ]
//                 \              \--[ b ]
//                  \-[ c ]
class PromptTree {
 public:
  PromptTree() = default;
  // Makes the tree of all common beginnings.
  explicit PromptTree(const std::vector<const std::vector<TokenId>*>& prompts);
  // Makes the tree of one common head of `shared` tokens: behind it each prompt counts whole.
  // `sizes` are those of the prompts.
  PromptTree(int32_t shared, const std::vector<int32_t>& sizes);

  int64_t num_tokens() const;
  // The number of tokens that were cached before any of these prompts was computed. `cached`
  // [prompts.size()] is the number of first tokens that each prompt found. A part of a run was
  // cached if every prompt with it found it: a part that one prompt had to compute was computed for
  // all.
  int64_t NumCached(const std::vector<int32_t>& cached) const;

 private:
  struct Run {
    int32_t begin = 0;  // position in the prompts
    int32_t end = 0;
    size_t first = 0;  // the prompts with this run are order_[first, last)
    size_t last = 0;
  };

  void AddRuns(const std::vector<const std::vector<TokenId>*>& prompts, size_t first, size_t last,
               int32_t begin);

  std::vector<size_t> order_;  // prompts, sorted by their tokens
  std::vector<Run> runs_;
};

}  // namespace skein
