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
  // Above 0: the file's rows are interleaved in heads of so many rows, as GGUF keeps the q and k of
  // the Llama family. The functions below take and give the rows of the model.
  int64_t interleaved_head_rows = 0;
  // If not null, the adapter's change of `weight` is added to the rows that ReadRows gives.
  const LoraAdapter* adapter = nullptr;
  std::string_view weight;  // in the adapter

  int64_t row_elements() const { return shape.back(); }
  int64_t num_rows() const;
  size_t row_bytes() const;
  // Row `row` as the file has it: [row_bytes()].
  const std::byte* Row(int64_t row) const;
  // Widens rows [first_row, first_row + num_rows) to `out`: [num_rows, row_elements()].
  // REQUIRES: these rows exist.
  void ReadRows(int64_t first_row, int64_t num_rows, float* out) const;
};

}  // namespace skein
