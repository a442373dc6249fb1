#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/blocks/block_format.h"
#include "base/result.h"
#include "io/model_files.h"
#include "model/config/quantization_config.h"

namespace skein {

// A matrix [n, k] that a file has in another form than rows of numbers. Its rows are read one by
// one, widened or as blocks. Reading is thread-safe.
class StoredMatrix {
 public:
  virtual ~StoredMatrix() = default;

  // The bytes of the matrix in the file.
  virtual size_t bytes() const = 0;
  // Whether its numbers are rounded to fewer bits than those of a plain matrix.
  virtual bool is_quantized() const = 0;
  // Widens rows [first_row, first_row + num_rows) to `out`: [num_rows, k].
  virtual void ReadRows(int32_t first_row, int32_t num_rows, float* out) const = 0;

  // The format whose blocks hold the matrix exactly. nullopt: no format does.
  virtual std::optional<BlockFormat> format() const = 0;
  // The reason if no format does: "its groups have 24 columns, no multiple of 32".
  virtual std::string widened_because() const = 0;
  // Writes rows [first_row, first_row + num_rows) as blocks of format(). REQUIRES: format() is set.
  virtual void ReadBlocks(int32_t first_row, int32_t num_rows, std::byte* out) const = 0;
};

// Opens the matrix [n, k] of that name ("model.layers.0.mlp.up_proj"), and sets `tensors` to the
// names of its tensors. Null if the matrix is plain in the files, or missing. Fails as the forms
// do.
Result<std::shared_ptr<const StoredMatrix>> OpenStoredMatrix(const ModelFiles& files,
                                                             const std::string& name, int32_t n,
                                                             int32_t k,
                                                             const QuantizationConfig& config,
                                                             std::vector<std::string>* tensors);

}  // namespace skein
