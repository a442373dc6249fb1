#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "skein/request.h"

namespace skein {

// The prompts' common beginnings, as a tree of runs of tokens. Each run counts once.
//
//   [ head of all ]--[ of a and b ]--[ a ]
//                 \              \--[ b ]
//                  \-[ c ]
class PromptTree {
 public:
  PromptTree() = default;
  // Makes the tree of all common beginnings.
  explicit PromptTree(const std::vector<const std::vector<TokenId>*>& prompts);
  // Makes the tree for one common head of `shared` tokens. The rest of each prompt is counted in
  // full. `sizes` are the numbers of tokens of the prompts.
  PromptTree(int32_t shared, const std::vector<int32_t>& sizes);

  int64_t num_tokens() const;
  // The number of tokens that were cached before any of these prompts was computed. `cached`
  // [prompts.size()] is the number of each prompt's first tokens that were found in the cache. A
  // part of a run counts as cached only if all prompts with it found it: a part that one prompt had
  // to compute may be found by the others afterwards.
  int64_t NumCached(const std::vector<int32_t>& cached) const;

 private:
  struct Run {
    int32_t begin = 0;  // position in each of its prompts
    int32_t end = 0;
    size_t first = 0;  // the prompts with this run are those at order_[first, last)
    size_t last = 0;
  };

  void AddRuns(const std::vector<const std::vector<TokenId>*>& prompts, size_t first, size_t last,
               int32_t begin);

  std::vector<size_t> order_;  // indices of the prompts, sorted by their tokens
  std::vector<Run> runs_;
};

}  // namespace skein
