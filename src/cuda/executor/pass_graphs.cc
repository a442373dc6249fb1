#include "cuda/executor/pass_graphs.h"

namespace skein::cuda {

PassGraphs::~PassGraphs() {
  for (const auto& [shape, graph] : graphs_) device_->FreeGraph(graph);
}

std::optional<int32_t> PassGraphs::Find(const Shape& shape) const {
  const auto found = graphs_.find(shape);
  return found == graphs_.end() ? std::nullopt : std::optional(found->second);
}

void PassGraphs::Add(const Shape& shape, int32_t graph) {
  for (auto it = graphs_.begin(); it != graphs_.end();) {
    if (it->first.integers == shape.integers) {
      ++it;
      continue;
    }
    device_->FreeGraph(it->second);
    it = graphs_.erase(it);
  }
  graphs_.emplace(shape, graph);
}

}  // namespace skein::cuda
