#include "bench/sched/radix_orders.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace skein {
namespace {

using Node = RadixTree::Node;

struct Weights {
  // The number of waiting requests at a node and below it, and the first of these requests.
  struct Weight {
    int64_t count = 0;
    int32_t first = 0;
  };
  std::unordered_map<const Node*, Weight> below;
  std::unordered_map<const Node*, std::vector<int32_t>> at;

  // Orders nodes with more requests first; ties by arrival.
  bool Before(const Node* a, const Node* b) const {
    const Weight &x = below.at(a), &y = below.at(b);
    return x.count != y.count ? x.count > y.count : x.first < y.first;
  }
};

void Visit(const Node& node, const Weights& weights, std::vector<int32_t>* order) {
  std::vector<const Node*> children;
  for (const auto& [token, child] : node.children) {
    if (weights.below.contains(child.get())) children.push_back(child.get());
  }
  std::ranges::sort(children, [&](const Node* a, const Node* b) { return weights.Before(a, b); });
  for (const Node* child : children) Visit(*child, weights, order);
  if (const auto found = weights.at.find(&node); found != weights.at.end()) {
    order->insert(order->end(), found->second.begin(), found->second.end());
  }
}

}  // namespace

std::vector<int32_t> LpmOrder(const RadixTree& cached,
                              std::span<const std::span<const int32_t>> waiting) {
  std::vector<int32_t> lengths, order(waiting.size());
  for (const std::span<const int32_t> tokens : waiting) {
    lengths.push_back(cached.Match(tokens).num_tokens);
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](int32_t i) { return lengths[i]; });
  return order;
}

std::vector<int32_t> DfsWeightOrder(const RadixTree& cached,
                                    std::span<const std::span<const int32_t>> waiting) {
  Weights weights;
  for (int32_t i = 0; i < std::ssize(waiting); ++i) {
    const Node* node = cached.Match(waiting[i]).node;
    weights.at[node].push_back(i);
    for (; node != nullptr; node = node->parent) {
      if (++weights.below[node].count == 1) weights.below[node].first = i;
    }
  }
  std::vector<int32_t> order;
  Visit(cached.root(), weights, &order);
  return order;
}

}  // namespace skein
