#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "base/threads/thread_team.h"
#include "io/model_files.h"
#include "kernels/packed_weight.h"
#include "model/config/config.h"
#include "model/weights/row_source.h"
#include "model/weights/weights.h"

namespace skein {

// A part of a matrix: rows of a tensor, from tensor_row on, which become the matrix's rows from
// row_begin on.
struct TensorPart {
  std::string name;  // without ".weight" and ".bias"
  int32_t row_begin = 0;
  int32_t num_rows = 0;
  int32_t tensor_row = 0;
  int32_t tensor_rows = 0;  // 0: num_rows
  int32_t RowsOfTensor() const { return tensor_rows > 0 ? tensor_rows : num_rows; }
};

// Finds tensors of a model by name and shape, and reads them. At first it only checks that each
// tensor exists, so that a faulty model is refused at once; outputs then stay empty. After
// StartReading, it reads. Fails with kInvalidArgument, naming the tensor, if a tensor is missing or
// has another shape.
class TensorLoader {
 public:
  // All references outlive the loader.
  TensorLoader(const ModelFiles& files, const QuantizationConfig& quantization, WeightTypes types,
               ThreadTeam& team, const LoadProgress& progress);

  void StartReading() { checking_ = false; }
  const ModelFiles& files() const { return files_; }
  // The type of matrices: the requested type, or kBlocks if the file's blocks were kept.
  DType matrix_dtype() const { return matrix_dtype_; }
  // The number of quantized matrices that may stay packed, and of those that were widened.
  struct Widening {
    int64_t num_quantized = 0, num_widened = 0;
    std::string because;  // the reason for one of them; empty: parts of a matrix share panels
  };
  const Widening& widening() const { return widening_; }
  // Whether a call has named the tensor.
  bool IsKnown(const std::string& name) const { return known_.contains(name); }
  // Counts a tensor that is not read as known.
  void Skip(const std::string& name) { known_.insert(name); }

  // Reads a vector [size], and adds `offset` to each element.
  Status Vector(const std::string& name, int32_t size, std::vector<float>& out, float offset = 0);
  // Reads a tensor of this shape, row by row.
  Status Tensor(const std::string& name, const std::vector<int64_t>& shape,
                std::vector<float>& out);
  // Reads the biases of the parts to out [size], with zeros between the parts.
  Status Bias(const std::vector<TensorPart>& parts, int32_t size, std::vector<float>& out);
  // Reads a matrix [n, k] of a layer, or the output matrix, in the type of matrices.
  Status Matrix(const std::vector<TensorPart>& parts, int32_t n, int32_t k, PackedWeight& out);
  // The compute type.
  DType dtype() const { return dtype_; }
  // Whether tensors are only looked for, and nothing is filled.
  bool checking() const { return checking_; }
  // Reads a matrix [n, k] in the compute type.
  Status PlainMatrix(const std::vector<TensorPart>& parts, int32_t n, int32_t k, PackedWeight& out);
  // Reads a matrix [n, k] in the compute type, and its biases if it has any.
  Status Linear(const std::vector<TensorPart>& parts, int32_t n, int32_t k, PackedWeight& weight,
                std::vector<float>& bias, bool has_bias = true);
  // Multiplies rows x [m, k] by the matrix [n, k] of that name, in f32, and adds its biases: out
  // [m, n]. Fails as SelectIsa does, too.
  Status Product(std::span<const float> x, const std::string& name, int32_t n, int32_t k,
                 std::vector<float>& out);
  // Reads rows [begin, begin + count) of a table that has begin + count rows of `width` floats.
  Status FloatTable(const std::string& name, int32_t begin, int32_t count, int32_t width,
                    std::vector<float>& out);
  // Reads the embedding table [vocab, hidden], row by row, in the compute type or in the file's
  // blocks.
  Status Embedding(const std::string& name, ModelWeights* weights);

 private:
  Result<TensorView> Find(const std::string& name, const std::vector<int64_t>& shape);
  Status MatrixAs(DType dtype, const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                  PackedWeight& out);
  Result<std::vector<RowSource>> FindRows(const std::vector<TensorPart>& parts, int32_t k);
  // Makes the matrix by `make`, and packs the sources into it.
  template <typename Make>
  Status Fill(const std::vector<RowSource>& sources, const Make& make, PackedWeight& out);
  void Pack(const std::vector<RowSource>& sources, PackedWeight& out);
  void CountQuantized(const std::vector<RowSource>& sources, bool widened);
  void CopyEmbedding(const TensorView& view, ModelWeights* weights);
  void CopyBytes(std::span<const std::byte> from, AlignedBuffer* to);
  void Report(size_t bytes);

  const ModelFiles& files_;
  const QuantizationConfig& quantization_;
  const DType dtype_;  // the compute type
  DType matrix_dtype_;
  const BlockFormat block_format_;  // of matrices that are rounded to blocks
  const bool keep_blocks_;
  ThreadTeam& team_;
  const LoadProgress& progress_;
  bool checking_ = true;
  std::set<std::string> known_;
  Widening widening_;
  int64_t bytes_done_ = 0;
  int64_t bytes_total_ = 0;
};

}  // namespace skein
