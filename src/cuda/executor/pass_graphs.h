#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/result.h"
#include "cuda/device/device.h"

namespace skein::cuda {

// The graphs of one pass: all launches of a step, recorded once for each shape, so that a step
// costs the host one call. The device outlives them.
class PassGraphs {
 public:
  // The numbers that the launches depend on, apart from the integers that they read.
  struct Shape {
    int32_t num_tokens = 0;
    int32_t num_tiles = 0;  // of attention
    int32_t tile_rows = 0;
    int32_t num_segments = 0;
    int32_t num_outputs = 0;
    int32_t num_panels = 0;          // of labels; 0: the outputs are logits
    const void* integers = nullptr;  // the address of these
    auto operator<=>(const Shape&) const = default;
  };

  explicit PassGraphs(Device* device) : device_(device) {}
  ~PassGraphs();
  PassGraphs(const PassGraphs&) = delete;
  PassGraphs& operator=(const PassGraphs&) = delete;

  std::optional<int32_t> Find(const Shape& shape) const;
  // Whether this was asked for the shape before, with the same integers' address. To record takes
  // the time of several steps, so a shape that may never come again has no graph.
  bool CameBefore(const Shape& shape);
  // Makes the graph of a shape. Graphs with other integers' addresses are freed. Fails as
  // Device::MakeGraph does.
  Result<int32_t> Add(const Shape& shape, std::span<const Launch> launches);

 private:
  Device* const device_;
  std::map<Shape, int32_t> graphs_;
  std::set<Shape> came_;
};

}  // namespace skein::cuda
