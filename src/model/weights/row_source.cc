#include "model/weights/row_source.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/blocks/block_quantizer.h"

namespace skein {
namespace {

// Packs rows [first, first + count) of `out` from wide [count, k], rounded to the type of `out`, or
// to the format of their panel.
void PackRounded(int32_t first, int32_t count, std::span<const float> wide, PackedWeight* out) {
  if (out->dtype() != DType::kBlocks) {
    return out->PackRows(first, count, wide.data(), DType::kF32);
  }
  const BlockFormat format = out->block_panel(first / kPanelCols).format;
  const BlockTraits& traits = TraitsOf(format);
  const size_t elements = size_t(count) * out->k();
  std::vector<std::byte> blocks(elements / traits.file_elements * traits.file_bytes);
  QuantizeBlocks(format, wide.first(elements), blocks.data());
  out->PackBlocks(first, count, blocks.data(), format);
}

}  // namespace

void RowSource::Pack(int32_t first, int32_t count, bool keep_blocks, PackedWeight* out) const {
  const int32_t k = out->k(), row = tensor_row + first - row_begin;
  const bool as_is = !stored && view.interleaved_head_rows == 0 && view.adapter == nullptr &&
                     (view.dtype == DType::kF32 || view.dtype == DType::kBf16);
  if (out->dtype() != DType::kBlocks && as_is) {
    return out->PackRows(first, count, view.Row(row), view.dtype);
  }
  if (out->dtype() == DType::kBlocks && keep_blocks) {
    const BlockFormat kept = *format();
    if (!stored) {
      if (view.interleaved_head_rows == 0) {
        return out->PackBlocks(first, count, view.Row(row), kept);
      }
      for (int32_t i = 0; i < count; ++i) out->PackBlocks(first + i, 1, view.Row(row + i), kept);
      return;
    }
    const BlockTraits& traits = TraitsOf(kept);
    std::vector<std::byte> blocks(size_t(count) * (k / traits.file_elements) * traits.file_bytes);
    stored->ReadBlocks(row, count, blocks.data());
    return out->PackBlocks(first, count, blocks.data(), kept);
  }
  // A panel's rows at a time stay in the second-level cache. Another form may have its columns side
  // by side: there, more rows at a time read whole cache lines.
  std::vector<float> wide(size_t(stored ? count : std::min(count, kPanelCols)) * k);
  for (const int32_t end = first + count; first < end;) {
    const int32_t most = stored ? count : kPanelCols - first % kPanelCols;
    const int32_t rows = std::min(end - first, most);
    ReadRows(tensor_row + first - row_begin, rows, wide.data());
    PackRounded(first, rows, wide, out);
    first += rows;
  }
}

void RowSource::ReadRows(int32_t row, int32_t count, float* to) const {
  if (stored) {
    stored->ReadRows(row, count, to);
  } else {
    view.ReadRows(row, count, to);
  }
}

Status ReadFloats(const ModelFiles& files, const std::string& name, std::vector<float>* out) {
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, files.Find(name));
  out->resize(static_cast<size_t>(view.num_rows() * view.row_elements()));
  view.ReadRows(0, view.num_rows(), out->data());
  return Status::Ok();
}

}  // namespace skein
