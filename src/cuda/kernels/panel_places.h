#pragma once

#include <cstddef>
#include <vector>

#include "cuda/kernels/args.h"
#include "kernels/packed_weight.h"

namespace skein::cuda {

// One entry for each panel of a block-quantized matrix, in order: the place of its bytes, counted
// from weight.panel(0).
std::vector<PanelPlace> PlacesOf(const PackedWeight& weight);
// The bytes from there to the end of the last panel.
size_t BytesOfPanels(const PackedWeight& weight);

}  // namespace skein::cuda
