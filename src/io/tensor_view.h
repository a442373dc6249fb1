#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "io/gguf_types.h"

namespace skein {

class LoraAdapter;

// A tensor of a mapped file, row-major; a row is the last dimension.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // of any alignment
  size_t bytes = 0;
  const GgufType* blocks = nullptr;  // the type of the elements if dtype is kBlocks
  // If above 0, the file's rows are interleaved within heads of this many rows, as GGUF stores q
  // and k of the Llama family. The functions below use the model's row numbers.
  int64_t interleaved_head_rows = 0;
  // If not null, ReadRows adds the adapter's change of `weight` to the rows.
  const LoraAdapter* adapter = nullptr;
  std::string_view weight;  // the name of this tensor in the adapter

  int64_t row_elements() const { return shape.empty() ? 1 : shape.back(); }
  int64_t num_rows() const;
  size_t row_bytes() const;
  // Row `row`, in the form that the file has: [row_bytes()].
  const std::byte* Row(int64_t row) const;
  // Widens rows [first_row, first_row + num_rows) to `out`: [num_rows, row_elements()].
  // REQUIRES: these rows exist.
  void ReadRows(int64_t first_row, int64_t num_rows, float* out) const;
};

}  // namespace skein
