#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "io/safetensors_writer.h"
#include "model/config/config.h"
#include "model/weights/tensor_list.h"

namespace skein {

// One weight of a model in a GGUF file, converted back to HuggingFace's form: the 1 that GGUF adds
// to norms is subtracted, the heads of linear-attention layers are in HuggingFace's order, decays
// are stored as A_log, not as rates, and Qwen3-Next's q, k, v and z are one matrix.
class GgufSource {
 public:
  // kInvalidArgument names the tensor if the file lacks it, or if it has another shape.
  static Result<GgufSource> Open(const ModelFiles& files, const ModelConfig& config,
                                 const ModelTensor& weight, DType dtype);

  const TensorSpec& spec() const { return spec_; }
  // The model's weights in the file that it is made of.
  const std::vector<std::string>& weights() const { return weights_; }
  int64_t num_rows() const { return view_.num_rows() + (fuses() ? z_.num_rows() : 0); }
  int64_t row_elements() const { return view_.row_elements(); }

  // Widens rows [first, first + count) to `out`: [count, row_elements()].
  Status ReadRows(int64_t first, int64_t count, float* out) const;

 private:
  // The heads of v that a weight has side by side, as rows or as columns, behind `first`.
  struct Heads {
    int64_t first = 0, width = 0;  // 0: there are none
  };

  bool fuses() const { return weights_.size() > 1; }
  // Opens the matrix of q, k, v and z of a file that has z apart.
  Status OpenFused(const ModelFiles& files, const LinearLayers& linear);
  // Reads row `row` of that matrix (LinearLayers::fused_qkvz).
  void ReadFusedRow(int64_t row, float* out) const;
  // The row or the column of the file that is this one of the model.
  int64_t InFile(const Heads& heads, int64_t index) const;

  TensorSpec spec_;
  std::vector<std::string> weights_;
  TensorView view_;
  TensorView z_;                                  // behind view_, if the two are fused
  int64_t k_width_ = 0, k_dim_ = 0, v_rows_ = 0;  // then: of q, of a head of it, and its heads of v
  float offset_ = 0;                              // of the tensor's elements from the weight's
  bool is_decay_ = false;
  Heads rows_, columns_;
  int64_t num_k_heads_ = 1, heads_per_k_ = 1;
};

// Every weight with its tensor; a tensor that is no weight's is kUnsupported, by name. `path` is
// the file's, for messages.
Result<std::vector<GgufSource>> FindGgufSources(const ModelFiles& files, const std::string& path,
                                                const ModelConfig& config, DType dtype);

}  // namespace skein
