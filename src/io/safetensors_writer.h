#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/output_file.h"
#include "base/result.h"

namespace skein {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // every dimension >= 0

  int64_t num_elements() const;
};

// Writes the weights of a model in the layout of HuggingFace: one model.safetensors, or an index
// with shards of at most `max_shard_bytes` of data (a larger tensor has its own shard). Files get
// their full length at once, and the data is written in any order. So only the caller's chunks take
// memory.
class SafetensorsWriter {
 public:
  // Creates the files, replaces files of the same names, and writes headers and index.
  static Result<SafetensorsWriter> Create(const std::string& dir, std::vector<TensorSpec> tensors,
                                          int64_t max_shard_bytes);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  size_t num_shards() const { return shards_.size(); }

  // Writes bytes of tensor `index`, from its byte `offset` on. Thread-safe.
  Status Write(size_t index, int64_t offset, std::span<const std::byte> bytes) const;

  // Closes the files; fails if the system could not keep the written data.
  Status Close();

 private:
  struct Place {
    size_t shard = 0;
    int64_t begin = 0;  // in the shard's data; after Create in its file
  };
  SafetensorsWriter() = default;
  int64_t Plan(int64_t max_shard_bytes);
  Status CreateShard(size_t shard, const std::string& path);
  Status WriteIndex(const std::string& dir, int64_t total_bytes) const;

  std::vector<TensorSpec> tensors_;
  std::vector<Place> places_;  // [tensors_.size()]
  std::vector<OutputFile> shards_;
};

// Writes `text` to a file. An existing file is replaced.
Status WriteFile(const std::string& path, std::string_view text);

}  // namespace skein
