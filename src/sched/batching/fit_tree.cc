#include "sched/batching/fit_tree.h"

#include <algorithm>
#include <utility>

namespace skein {

struct FitTree::Node {
  SequenceKey key;
  int32_t weight = 0;
  int32_t least_weight = 0;  // of this node and all nodes below
  uint64_t height = 0;       // random; never above the parent's
  Sequence* sequence = nullptr;
  NodePtr left;
  NodePtr right;
};

namespace {

// SplitMix64's finalizer.
uint64_t Scramble(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

FitTree::FitTree() = default;
FitTree::~FitTree() = default;

void FitTree::Update(Node* node) {
  node->least_weight = node->weight;
  for (const Node* child : {node->left.get(), node->right.get()}) {
    if (child != nullptr) node->least_weight = std::min(node->least_weight, child->least_weight);
  }
}

void FitTree::Split(NodePtr node, const SequenceKey& key, NodePtr* below, NodePtr* rest) {
  if (node == nullptr) {
    below->reset();
    rest->reset();
    return;
  }
  const bool is_below = node->key < key;
  NodePtr* child = is_below ? &node->right : &node->left;
  NodePtr first, second;
  Split(std::move(*child), key, &first, &second);
  *child = std::move(is_below ? first : second);
  Update(node.get());
  *(is_below ? rest : below) = std::move(is_below ? second : first);
  *(is_below ? below : rest) = std::move(node);
}

FitTree::NodePtr FitTree::Merge(NodePtr a, NodePtr b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (a->height >= b->height) {
    a->right = Merge(std::move(a->right), std::move(b));
    Update(a.get());
    return a;
  }
  b->left = Merge(std::move(a), std::move(b->left));
  Update(b.get());
  return b;
}

void FitTree::InsertInto(NodePtr* slot, NodePtr node) {
  if (*slot == nullptr || (*slot)->height < node->height) {
    Split(std::move(*slot), node->key, &node->left, &node->right);
    Update(node.get());
    *slot = std::move(node);
    return;
  }
  Node* at = slot->get();
  NodePtr* child = node->key < at->key ? &at->left : &at->right;
  InsertInto(child, std::move(node));
  Update(at);
}

bool FitTree::EraseFrom(NodePtr* slot, const SequenceKey& key) {
  Node* at = slot->get();
  if (at == nullptr) return false;
  if (at->key == key) {
    *slot = Merge(std::move(at->left), std::move(at->right));
    return true;
  }
  if (!EraseFrom(key < at->key ? &at->left : &at->right, key)) return false;
  Update(at);
  return true;
}

bool FitTree::Insert(const SequenceKey& key, int32_t weight, Sequence* sequence) {
  if (Contains(key)) return false;
  auto node = std::make_unique<Node>();
  node->key = key;
  node->weight = node->least_weight = weight;
  node->height = Scramble(num_inserted_++);
  node->sequence = sequence;
  InsertInto(&root_, std::move(node));
  ++size_;
  return true;
}

bool FitTree::Erase(const SequenceKey& key) {
  if (!EraseFrom(&root_, key)) return false;
  --size_;
  return true;
}

bool FitTree::Contains(const SequenceKey& key) const {
  const Node* node = root_.get();
  while (node != nullptr && node->key != key) {
    node = (key < node->key ? node->left : node->right).get();
  }
  return node != nullptr;
}

Sequence* FitTree::First() const {
  const Node* node = root_.get();
  if (node == nullptr) return nullptr;
  while (node->left != nullptr) node = node->left.get();
  return node->sequence;
}

// The search enters only subtrees that hold a fitting sequence behind `after`, so the cost is
// O(height).
Sequence* FitTree::Fitting(const Node* node, const SequenceKey* after, int32_t max_weight) {
  if (node == nullptr || node->least_weight > max_weight) return nullptr;
  if (after != nullptr && !(*after < node->key)) {
    return Fitting(node->right.get(), after, max_weight);
  }
  if (Sequence* found = Fitting(node->left.get(), after, max_weight)) return found;
  if (node->weight <= max_weight) return node->sequence;
  return Fitting(node->right.get(), nullptr, max_weight);
}

Sequence* FitTree::NextFitting(const SequenceKey* after, int32_t max_weight) const {
  return Fitting(root_.get(), after, max_weight);
}

}  // namespace skein
