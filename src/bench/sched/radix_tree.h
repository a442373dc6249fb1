#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace skein {

// A tree of token sequences by common prefix, compared token by token. SGLang keeps its cached
// prefixes in such a tree (RadixAttention); here it is a yardstick for ChunkedHashTree. Plain; not
// thread-safe.
class RadixTree {
 public:
  struct Node {
    std::vector<int32_t> edge;  // tokens between the parent and this node
    Node* parent = nullptr;
    int32_t depth = 0;                                  // tokens from the root
    std::map<int32_t, std::unique_ptr<Node>> children;  // keyed by the first token of their edges
  };

  // Inserts `tokens` and returns the node at which they end; splits and adds nodes as needed.
  const Node* Insert(std::span<const int32_t> tokens);

  // The number of first tokens that lie in the tree, and the deepest node that they reach. If they
  // end inside an edge, that is the node above.
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
