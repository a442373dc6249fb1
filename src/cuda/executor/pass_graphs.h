#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cuda/device/device.h"

namespace skein::cuda {

// The graphs of one pass: all launches of a decode step, recorded once for each shape, so that a
// step costs the host one call. The device outlives them.
class PassGraphs {
 public:
  // The numbers that the launches depend on, apart from the integers that they read.
  struct Shape {
    int32_t num_tokens = 0;
    int32_t num_segments = 0;
    int32_t num_prefixes = 0;
    bool draws = false;                 // with random draws
    std::vector<const void*> integers;  // the addresses of these, for each rank
    auto operator<=>(const Shape&) const = default;
  };

  explicit PassGraphs(Device* device) : device_(device) {}
  ~PassGraphs();
  PassGraphs(const PassGraphs&) = delete;
  PassGraphs& operator=(const PassGraphs&) = delete;

  std::optional<int32_t> Find(const Shape& shape) const;
  // Adds the graph of a shape. Graphs with integers at other addresses are freed.
  void Add(const Shape& shape, int32_t graph);

 private:
  Device* const device_;
  std::map<Shape, int32_t> graphs_;
};

}  // namespace skein::cuda
