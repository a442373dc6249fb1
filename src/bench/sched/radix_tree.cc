#include "bench/sched/radix_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace skein {
namespace {

// Compares blocks with memcmp, then single tokens.
size_t CommonLength(std::span<const int32_t> a, std::span<const int32_t> b) {
  constexpr size_t kPiece = 256;
  const size_t end = std::min(a.size(), b.size());
  size_t i = 0;
  while (i + kPiece <= end && std::memcmp(&a[i], &b[i], kPiece * sizeof(int32_t)) == 0) {
    i += kPiece;
  }
  while (i < end && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

// Makes `node` end after `length` tokens of its edge. A new node below it takes the rest.
void RadixTree::Cut(Node* node, size_t length) {
  auto rest = std::make_unique<Node>();
  const auto middle = node->edge.begin() + static_cast<std::ptrdiff_t>(length);
  rest->edge.assign(middle, node->edge.end());
  rest->parent = node;
  rest->depth = node->depth;
  rest->children = std::exchange(node->children, {});
  for (auto& [token, child] : rest->children) child->parent = rest.get();
  node->edge.erase(middle, node->edge.end());
  node->depth -= static_cast<int32_t>(rest->edge.size());
  node->children.emplace(rest->edge.front(), std::move(rest));
}

const RadixTree::Node* RadixTree::Insert(std::span<const int32_t> tokens) {
  Node* node = &root_;
  while (!tokens.empty()) {
    std::unique_ptr<Node>& child = node->children[tokens.front()];
    if (child == nullptr) {
      child = std::make_unique<Node>();
      child->edge.assign(tokens.begin(), tokens.end());
      child->parent = node;
      child->depth = node->depth + static_cast<int32_t>(tokens.size());
    }
    const size_t common = CommonLength(child->edge, tokens);
    if (common < child->edge.size()) Cut(child.get(), common);
    node = child.get();
    tokens = tokens.subspan(common);
  }
  return node;
}

RadixTree::Found RadixTree::Match(std::span<const int32_t> tokens) const {
  Found found = {.node = &root_};
  while (!tokens.empty()) {
    const auto child = found.node->children.find(tokens.front());
    if (child == found.node->children.end()) break;
    const size_t common = CommonLength(child->second->edge, tokens);
    found.num_tokens += static_cast<int32_t>(common);
    if (common < child->second->edge.size()) break;
    found.node = child->second.get();
    tokens = tokens.subspan(common);
  }
  return found;
}

}  // namespace skein
