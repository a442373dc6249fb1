#include "io/tensor_view.h"

#include "base/check.h"
#include "base/convert.h"
#include "io/lora_adapter.h"

namespace skein {

int64_t TensorView::num_rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

size_t TensorView::row_bytes() const {
  if (blocks == nullptr) return static_cast<size_t>(row_elements()) * SizeOf(dtype);
  return static_cast<size_t>(row_elements() / blocks->block_elements * blocks->block_bytes);
}

const std::byte* TensorView::Row(int64_t row) const {
  if (interleaved_head_rows > 0) {
    // Rows j and j + half of a head are stored as rows 2j and 2j + 1.
    const int64_t half = interleaved_head_rows / 2, in_head = row % interleaved_head_rows;
    row = row - in_head + 2 * (in_head % half) + in_head / half;
  }
  return data + static_cast<size_t>(row) * row_bytes();
}

void TensorView::ReadRows(int64_t first_row, int64_t count, float* out) const {
  SKEIN_CHECK(first_row >= 0 && count >= 0 && count <= num_rows() - first_row);
  float* to = out;
  for (int64_t row = first_row; row < first_row + count; ++row, to += row_elements()) {
    if (blocks == nullptr) {
      Widen(Row(row), dtype, row_elements(), to);
    } else {
      blocks->dequantize(Row(row), row_elements() / blocks->block_elements, to);
    }
  }
  if (adapter != nullptr) adapter->AddTo(weight, first_row, count, out);
}

}  // namespace skein
