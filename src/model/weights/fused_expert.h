#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "io/model_files.h"
#include "model/weights/stored_matrix.h"

namespace skein {

// The matrix of one expert in the files of gpt-oss, whose tensors hold those of all experts. The
// tensor TENSOR is "...experts.gate_up_proj", in which rows of gate and up alternate, or
// "...experts.down_proj". Published files have its numbers in MXFP4 (OCP Microscaling Formats 1.0):
//
//   TENSOR_blocks [experts, rows, k / 32, 16] u8: byte i has number 2 i in its low half, 2 i + 1 in
//     its high half
//   TENSOR_scales [experts, rows, k / 32] u8
//
// Trained or widened files have TENSOR [experts, k, rows]. Biases are TENSOR_bias [experts, rows].
class FusedExpert : public StoredMatrix {
 public:
  // The tensors that contain the matrix `name` ("model.layers.0.mlp.experts.3.up_proj"). Empty if
  // it is no such matrix.
  static std::vector<std::string> TensorNames(const ModelFiles& files, const std::string& name);

  // Finds and checks the tensors of a matrix [n, k]. Fails with kInvalidArgument, naming the
  // tensor, if one is missing or has another shape, with kUnsupported if it has another type.
  // REQUIRES: TensorNames finds a tensor.
  static Result<std::shared_ptr<const StoredMatrix>> Open(const ModelFiles& files,
                                                          const std::string& name, int32_t n,
                                                          int32_t k);

  // The tensor that contains the biases of the matrix; empty if there is none.
  static std::string BiasName(const ModelFiles& files, const std::string& name);
  // Reads the biases [n] of the matrix. Fails as Open does. REQUIRES: BiasName finds a tensor.
  static Result<std::vector<float>> ReadBias(const ModelFiles& files, const std::string& name,
                                             int32_t n);

  size_t bytes() const override { return bytes_; }
  bool is_quantized() const override { return scales_ != nullptr; }
  void ReadRows(int32_t first_row, int32_t num_rows, float* out) const override;
  std::optional<BlockFormat> format() const override;
  std::string widened_because() const override { return {}; }
  void ReadBlocks(int32_t first_row, int32_t num_rows, std::byte* out) const override;

 private:
  struct Place;

  FusedExpert() = default;
  Status OpenBlocks(const ModelFiles& files, const Place& place);
  Status OpenPlain(const ModelFiles& files, const Place& place);
  // The row of the expert's part of the tensor that is row `row` of the matrix.
  int64_t TensorRow(int32_t row) const { return first_ + int64_t{row} * step_; }

  int32_t n_ = 0, k_ = 0;
  int32_t first_ = 0, step_ = 1;
  size_t bytes_ = 0;
  const std::byte* data_ = nullptr;    // the expert's part of TENSOR or TENSOR_blocks
  const std::byte* scales_ = nullptr;  // of TENSOR_scales; null: the numbers are plain
  DType dtype_ = DType::kF32;          // of plain numbers
};

}  // namespace skein
