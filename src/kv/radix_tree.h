#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace skein {

// Token sequences by common prefix, compared token by token: what SGLang keeps its cached prefixes
// in (RadixAttention), as a yardstick for ChunkedHashTree. Plain; not thread-safe.
class RadixTree {
 public:
  struct Node {
    std::vector<int32_t> edge;  // tokens between the parent and here
    Node* parent = nullptr;
    int32_t depth = 0;                                  // tokens from the root
    std::map<int32_t, std::unique_ptr<Node>> children;  // by the first token of their edges
  };

  // The node at which `tokens` end; cuts and adds nodes as needed.
  const Node* Insert(std::span<const int32_t> tokens);

  // How many of `tokens`, from the first on, lie in the tree, and the deepest node on their way
  // that they reach (the one above where they end inside an edge).
  struct Found {
    const Node* node = nullptr;
    int32_t num_tokens = 0;
  };
  Found Match(std::span<const int32_t> tokens) const;

  const Node& root() const { return root_; }

 private:
  static void Cut(Node* node, size_t length);

  Node root_;
};

}  // namespace skein
