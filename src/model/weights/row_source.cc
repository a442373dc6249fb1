#include "model/weights/row_source.h"

#include <span>
#include <vector>

#include "base/block_quantizer.h"

namespace skein {

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
  std::vector<float> wide(size_t(count) * k);
  if (stored) {
    stored->ReadRows(row, count, wide.data());
  } else {
    view.ReadRows(row, count, wide.data());
  }
  if (out->dtype() != DType::kBlocks) {
    return out->PackRows(first, count, wide.data(), DType::kF32);
  }
  const size_t row_bytes = size_t(k / kBlockTerms) * TraitsOf(BlockFormat::kQ4_0).file_bytes;
  std::vector<std::byte> blocks(count * row_bytes);
  for (int32_t i = 0; i < count; ++i) {
    QuantizeBlocks(BlockFormat::kQ4_0, std::span(wide).subspan(size_t(i) * k, k),
                   blocks.data() + i * row_bytes);
  }
  out->PackBlocks(first, count, blocks.data(), BlockFormat::kQ4_0);
}

Status ReadFloats(const ModelFiles& files, const std::string& name, std::vector<float>* out) {
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, files.Find(name));
  out->resize(static_cast<size_t>(view.num_rows() * view.row_elements()));
  view.ReadRows(0, view.num_rows(), out->data());
  return Status::Ok();
}

}  // namespace skein
