#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace skein {

// A tree of token sequences, in which common prefixes are shared; compared token by token. SGLang
// stores its cached prefixes in such a tree (RadixAttention). Here it is a baseline for
// ChunkedHashTree. A simple implementation; not thread-safe.
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

  // The number of first tokens that the tree contains, and the deepest node on their path. If they
  // end inside an edge, it is the node above that edge.
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
