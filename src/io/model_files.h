#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_model.h"
#include "io/lora_adapter.h"
#include "io/safetensors.h"
#include "io/tensor_view.h"

namespace skein {

struct GgufLayout;

// The most experts of a layer that are read.
inline constexpr int64_t kMaxExperts = 4096;

// Called while weights are read, with the bytes read so far and the total.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// The name that Mixtral's published files have for this tensor of a layer with experts, or the name
// itself. Everything else uses the names of the other mixtures.
std::string MixtralName(const std::string& weight);

// The weights of a model directory: model.safetensors, else the shards that
// model.safetensors.index.json names, else model.gguf. Every file is opened and checked at once.
// Tensors have HuggingFace's names. Names of a decoder's tensors begin with "model.", whatever
// prefix the files have ("language_model.model." for a multimodal model, none for a model without a
// head). Each expert of a mixture has tensors of its own, also if the files have one of all
// experts.
class ModelFiles {
 public:
  static Result<ModelFiles> Open(const std::string& model_dir);
  // Opens the weights of a GGUF model. `path` names its only file or its first part.
  static Result<ModelFiles> OpenGguf(const std::string& path);

  // Replaces tensors by the tensors of `file` with the same names behind `prefix`. Fails with
  // kInvalidArgument if a tensor to be replaced does not exist or has another shape.
  Status Replace(SafetensorsFile file, const std::string& prefix);
  // Adds the tensors of `file`, with `prefix` in front of their names.
  Status Add(SafetensorsFile file, const std::string& prefix);
  // Adds the changes of an adapter to the weights with the same names behind `prefix`. Fails as
  // Replace does. There may be at most one adapter.
  Status Change(LoraAdapter adapter, const std::string& prefix);

  // The names of all tensors, sorted. A tensor of a GGUF file that is not a weight keeps its own
  // name.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return tensors_.contains(name); }
  // Fails with kNotFound if there is no such tensor, and with kUnsupported if the tensor cannot be
  // read.
  Result<TensorView> Find(std::string_view name) const;
  // Finds a tensor of exactly this shape. If the shape differs, the error names both shapes.
  Result<TensorView> Find(std::string_view name, const std::vector<int64_t>& shape) const;
  // The bytes of a tensor of a safetensors file, of any type. Fails with kNotFound for any other
  // tensor.
  Result<std::span<const std::byte>> Bytes(std::string_view name) const;
  // The tensor's entry in the header. REQUIRES: Has(name).
  const TensorInfo& Info(std::string_view name) const;
  // Whether the weights come from a GGUF file; they may then have 4 to 8 bits.
  bool is_gguf() const { return gguf_.has_value(); }
  // The GGUF file; REQUIRES: is_gguf().
  const GgufModel& gguf() const { return *gguf_; }

  // Tells the system that the pages completely within `view` will not be read again soon and may be
  // dropped. A later read gets them from the file again. Thread-safe.
  static void ReleasePages(const TensorView& view);

 private:
  struct Entry {
    size_t file;      // index in files_
    TensorInfo info;  // of a GGUF file: begin and end are bytes of the tensor
    std::string name_in_file;
    int64_t interleaved_head_rows = 0;
    std::string name_in_adapter = {};  // empty: the adapter does not change it
  };

  ModelFiles() = default;
  Status OpenShards(const std::string& model_dir, const std::string& index_path);
  Status ReadGguf(GgufModel gguf);
  // Adds a tensor of the GGUF file as the weights that it holds.
  Status AddGgufTensor(const GgufLayout& layout, const GgufTensor& tensor, const std::string& name);
  void UsePlainNames();
  // Gives the tensors of Mixtral's layers the names of other mixtures.
  Status UseNamesOfMixtures();
  // Replaces tensors with the matrices of all experts by the matrices of each.
  Status SplitExperts();
  // The same for tensor `name`, of shape [experts, rows of `matrices`, columns]. The last `end`
  // characters of the name give way to those of a matrix.
  Status SplitExperts(const std::string& name, size_t end,
                      const std::vector<std::string_view>& matrices);
  // Checks that tensor `name` has this shape. `where`: the tensor that changes or replaces it, for
  // messages.
  Status CheckShape(const std::string& name, const std::vector<int64_t>& shape,
                    const std::string& where) const;

  std::vector<SafetensorsFile> files_;
  std::optional<GgufModel> gguf_;
  std::shared_ptr<const LoraAdapter> adapter_;  // views point to it
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace skein
