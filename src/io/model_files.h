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

// Called while weights are read, with the bytes read so far and the total.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// The weights of a model directory: model.safetensors, else the shards that
// model.safetensors.index.json names, else model.gguf. Every file is opened and checked at once.
// Tensors have the names that HuggingFace gives them; a decoder's begin with "model.", however the
// files spell that ("language_model.model." in a multimodal model, nothing in one without a head).
class ModelFiles {
 public:
  static Result<ModelFiles> Open(const std::string& model_dir);
  // The weights of a GGUF file, or of one whose first part it is.
  static Result<ModelFiles> OpenGguf(const std::string& path);

  // Puts the tensors of a file in place of those of the same name behind `prefix`. kInvalidArgument
  // for one that is not there, or has another shape.
  Status Replace(SafetensorsFile file, const std::string& prefix);
  // Adds the tensors of a file under their names behind `prefix`.
  Status Add(SafetensorsFile file, const std::string& prefix);
  // Adds the changes of an adapter to the weights of the same name behind `prefix`. As Replace. At
  // most one adapter.
  Status Change(LoraAdapter adapter, const std::string& prefix);

  // Names of all tensors, sorted. A tensor of a GGUF file that is no weight keeps its own.
  std::vector<std::string> Names() const;
  bool Has(std::string_view name) const { return tensors_.contains(name); }
  // kNotFound if there is no such tensor; kUnsupported if it cannot be read.
  Result<TensorView> Find(std::string_view name) const;
  // Finds a tensor of exactly this shape; the error names both shapes.
  Result<TensorView> Find(std::string_view name, const std::vector<int64_t>& shape) const;
  // The bytes of a tensor of a safetensors file, of any type; kNotFound for any other.
  Result<std::span<const std::byte>> Bytes(std::string_view name) const;
  // The header's entry; REQUIRES: Has(name).
  const TensorInfo& Info(std::string_view name) const;
  // Whether the weights are those of a GGUF file, which may have 4 to 8 bits.
  bool is_gguf() const { return gguf_.has_value(); }
  // The GGUF file; REQUIRES: is_gguf().
  const GgufModel& gguf() const { return *gguf_; }

  // Tells the system that the pages wholly within `view` will not be read again soon and may be
  // dropped. A later read takes them from the file again. Thread-safe.
  static void ReleasePages(const TensorView& view);

 private:
  struct Entry {
    size_t file;  // index in files_
    TensorInfo info;
    std::string name_in_file;
    int64_t interleaved_head_rows = 0;
    std::string name_in_adapter = {};  // empty: the adapter does not change it
  };

  ModelFiles() = default;
  Status OpenShards(const std::string& model_dir, const std::string& index_path);
  Status ReadGguf(GgufModel gguf);
  void UsePlainNames();
  // `where`: the tensor of this shape that changes tensor `name`, for messages.
  Status CheckShape(const std::string& name, const std::vector<int64_t>& shape,
                    const std::string& where) const;

  std::vector<SafetensorsFile> files_;
  std::optional<GgufModel> gguf_;
  std::shared_ptr<const LoraAdapter> adapter_;  // views point to it
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace skein
