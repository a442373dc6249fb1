#include "server/reads/prompt_tree.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(PromptTreeTest, CountsWhatPromptsShareOnce) {
  const std::vector<TokenId> a = {1, 2, 3, 4};
  const std::vector<TokenId> b = {1, 2, 3, 5, 6};
  const std::vector<TokenId> c = {1, 7};
  const std::vector<TokenId> head = {1, 2};  // the beginning of two other prompts
  const PromptTree tree({&a, &b, &c, &head, &a});
  EXPECT_EQ(tree.num_tokens(), 1 + 2 + 1 + 2 + 1);
  EXPECT_EQ(tree.NumCached({0, 0, 0, 0, 0}), 0);
  EXPECT_EQ(tree.NumCached({4, 5, 2, 2, 4}), tree.num_tokens());
  // One prompt had to compute token 3; the other prompts then found it in the cache.
  EXPECT_EQ(tree.NumCached({4, 2, 1, 2, 4}), 1 + 1 + 1);
}

TEST(PromptTreeTest, OfANamedHeadAlone) {
  const PromptTree tree(2, {5, 4});
  EXPECT_EQ(tree.num_tokens(), 2 + 3 + 2);
  EXPECT_EQ(tree.NumCached({3, 2}), 2 + 1);
  EXPECT_EQ(PromptTree(std::vector<const std::vector<TokenId>*>{}).num_tokens(), 0);
}

}  // namespace
}  // namespace skein
