#include "cuda/kernels/panel_places.h"

namespace skein::cuda {
namespace {

int32_t NumPanels(const PackedWeight& weight) { return (weight.n() + kPanelCols - 1) / kPanelCols; }

}  // namespace

std::vector<PanelPlace> PlacesOf(const PackedWeight& weight) {
  std::vector<PanelPlace> places;
  for (int32_t i = 0; i < NumPanels(weight); ++i) {
    const PackedWeight::BlockPanel panel = weight.block_panel(i);
    const BlockTraits& traits = TraitsOf(panel.format);
    places.push_back({.values = panel.values - weight.panel(0),
                      .scales = panel.scales - weight.panel(0),
                      .bits = traits.bits,
                      .zero = static_cast<uint32_t>(traits.zero),
                      .codebook = traits.codebook != nullptr,
                      .kind = traits.scales});
  }
  return places;
}

// The scales of a panel lie behind its values, and the panels in order.
size_t BytesOfPanels(const PackedWeight& weight) {
  const PackedWeight::BlockPanel last = weight.block_panel(NumPanels(weight) - 1);
  return (last.scales - weight.panel(0)) + PanelScaleBytes(last.format, weight.k());
}

}  // namespace skein::cuda
