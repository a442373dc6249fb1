#include "cuda/executor/pass_graphs.h"

namespace skein::cuda {

PassGraphs::~PassGraphs() {
  for (const auto& [shape, graph] : graphs_) device_->FreeGraph(graph);
}

std::optional<int32_t> PassGraphs::Find(const Shape& shape) const {
  const auto found = graphs_.find(shape);
  return found == graphs_.end() ? std::nullopt : std::optional(found->second);
}

Result<int32_t> PassGraphs::Add(const Shape& shape, std::span<const Launch> launches) {
  for (auto it = graphs_.begin(); it != graphs_.end();) {
    if (it->first.integers == shape.integers) {
      ++it;
      continue;
    }
    device_->FreeGraph(it->second);
    it = graphs_.erase(it);
  }
  SKEIN_ASSIGN_OR_RETURN(const int32_t graph, device_->MakeGraph(launches));
  graphs_.emplace(shape, graph);
  return graph;
}

}  // namespace skein::cuda
