#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "model/config/quantization_config.h"
#include "model/weights/stored_matrix.h"

namespace skein {

// A matrix of a quantized checkpoint. An element is (q - zero) * scale: the difference is exact,
// and the product is rounded to f32.
class QuantizedMatrix : public StoredMatrix {
 public:
  // The tensors that contain the matrix `name` ("model.layers.0.mlp.up_proj"). Empty if the matrix
  // is plain in the file.
  static std::vector<std::string> TensorNames(const ModelFiles& files, const std::string& name,
                                              QuantizationMethod method);

  // Finds and checks the tensors. Fails with kInvalidArgument, naming the tensor, if a tensor is
  // missing or has another shape.
  static Result<QuantizedMatrix> Open(const ModelFiles& files, const std::string& name, int32_t n,
                                      int32_t k, const QuantizationConfig& config);

  size_t bytes() const override { return bytes_; }
  bool is_quantized() const override { return true; }
  void ReadRows(int32_t first_row, int32_t num_rows, float* out) const override;
  std::optional<BlockFormat> format() const override { return format_; }  // Q4_0, INT4 or Q8_0
  std::string widened_because() const override { return widened_because_; }
  void ReadBlocks(int32_t first_row, int32_t num_rows, std::byte* out) const override;

 private:
  // Integers of 4 or 8 bits in a tensor of int32 words.
  struct Words {
    const std::byte* data = nullptr;
    int64_t columns = 0;  // words of a row
    int32_t bits = 4;

    uint32_t At(int64_t row, int64_t column, int32_t index) const;
  };

  QuantizedMatrix() = default;
  Status OpenColumns(const ModelFiles& files, const std::string& name);
  Status OpenRows(const ModelFiles& files, const std::string& name);
  Status OpenPacked(const ModelFiles& files, const std::string& name);
  Result<Words> FindWords(const ModelFiles& files, const std::string& name, int64_t rows,
                          int64_t columns) const;
  // Reads scales of any shape as [rows, columns]: those of a tensor, of rows, of groups or of
  // blocks.
  Status ReadScales(const ModelFiles& files, const std::string& name, bool transposed);
  Status ReadGroups(const ModelFiles& files, const std::string& name);
  void ChooseFormat();

  float Scale(int32_t row, int32_t group) const;
  int32_t Zero(int32_t row, int32_t group) const;
  int32_t Integer(int32_t row, int32_t i) const;  // q of kGptq, kAwq, kPacked and kInteger

  QuantizationConfig config_;
  int32_t n_ = 0, k_ = 0, group_size_ = 1;
  size_t bytes_ = 0;
  Words values_;                         // for kGptq, kAwq and kPacked
  const std::byte* elements_ = nullptr;  // [n, k], for kInteger and kFloat8
  std::optional<Words> zeros_;
  std::vector<float> scales_;  // [scale_rows, scale_columns], in order of rows and groups of k
  int32_t scale_rows_ = 1, scale_columns_ = 1;
  std::vector<int32_t> groups_;  // [k], if columns were quantized in another order; else empty
  std::optional<BlockFormat> format_;
  std::string widened_because_;
};

}  // namespace skein
