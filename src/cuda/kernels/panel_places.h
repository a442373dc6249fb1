#pragma once

#include <cstddef>
#include <vector>

#include "cuda/kernels/args.h"
#include "kernels/packed_weight.h"

namespace skein::cuda {

// The panels of a matrix of blocks, from weight.panel(0) on.
std::vector<PanelPlace> PlacesOf(const PackedWeight& weight);
// The bytes from there to the end of the last panel.
size_t BytesOfPanels(const PackedWeight& weight);

}  // namespace skein::cuda
