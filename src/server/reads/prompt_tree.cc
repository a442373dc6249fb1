#include "server/reads/prompt_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace skein {

PromptTree::PromptTree(const std::vector<const std::vector<TokenId>*>& prompts)
    : order_(prompts.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::sort(order_, [&](size_t a, size_t b) { return *prompts[a] < *prompts[b]; });
  if (!prompts.empty()) AddRuns(prompts, 0, prompts.size(), 0);
}

PromptTree::PromptTree(int32_t shared, const std::vector<int32_t>& sizes) : order_(sizes.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  runs_.push_back({0, shared, 0, sizes.size()});
  for (size_t i = 0; i < sizes.size(); ++i) runs_.push_back({shared, sizes[i], i, i + 1});
}

void PromptTree::AddRuns(const std::vector<const std::vector<TokenId>*>& prompts, size_t first,
                         size_t last, int32_t begin) {
  // The prompts are sorted, so a beginning that the first and the last prompt share is shared by
  // all.
  const auto& low = *prompts[order_[first]];
  const auto& high = *prompts[order_[last - 1]];
  const auto [end, other] =
      std::mismatch(low.begin() + begin, low.end(), high.begin() + begin, high.end());
  const auto shared = static_cast<int32_t>(end - low.begin());
  if (shared > begin) runs_.push_back({begin, shared, first, last});
  size_t at = first;
  while (at < last && static_cast<int32_t>(prompts[order_[at]]->size()) == shared) ++at;
  while (at < last) {
    const auto place = static_cast<size_t>(shared);
    const TokenId token = (*prompts[order_[at]])[place];
    size_t next = at + 1;
    while (next < last && (*prompts[order_[next]])[place] == token) ++next;
    AddRuns(prompts, at, next, shared);
    at = next;
  }
}

int64_t PromptTree::num_tokens() const {
  int64_t tokens = 0;
  for (const Run& run : runs_) tokens += run.end - run.begin;
  return tokens;
}

int64_t PromptTree::NumCached(const std::vector<int32_t>& cached) const {
  int64_t tokens = 0;
  for (const Run& run : runs_) {
    int32_t least = std::numeric_limits<int32_t>::max();
    for (size_t i = run.first; i < run.last; ++i) least = std::min(least, cached[order_[i]]);
    tokens += std::clamp(least, run.begin, run.end) - run.begin;
  }
  return tokens;
}

}  // namespace skein
