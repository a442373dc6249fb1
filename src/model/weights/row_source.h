#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/model_files.h"
#include "io/tensor_view.h"
#include "kernels/packed_weight.h"
#include "model/weights/stored_matrix.h"

namespace skein {

// The source of rows [row_begin, row_begin + num_rows) of a packed matrix: rows of a tensor, or of
// a matrix in another form, from tensor_row on.
struct RowSource {
  TensorView view;
  std::shared_ptr<const StoredMatrix> stored;  // instead of the view
  int32_t row_begin = 0;
  int32_t num_rows = 0;
  int32_t tensor_row = 0;

  // The format of the source's blocks in memory, if they may stay packed.
  std::optional<BlockFormat> format() const {
    if (stored) return stored->format();
    return view.blocks != nullptr ? view.blocks->format : std::nullopt;
  }
  // The source's bytes in the file.
  size_t bytes() const { return stored ? stored->bytes() : view.bytes; }

  // Packs rows [first, first + count) of `out`, which must be rows of this source. If `out` has
  // blocks, the file's blocks are kept as they are (`keep_blocks`), or rows are rounded to the
  // format of their panel. Threads may pack rows of different panels at the same time.
  void Pack(int32_t first, int32_t count, bool keep_blocks, PackedWeight* out) const;

 private:
  // Reads rows of the tensor or of the other form as f32 to `to` [count, k].
  void ReadRows(int32_t row, int32_t count, float* to) const;
};

// Reads all elements of a tensor as f32. Fails as ModelFiles::Find does.
Status ReadFloats(const ModelFiles& files, const std::string& name, std::vector<float>* out);

}  // namespace skein
