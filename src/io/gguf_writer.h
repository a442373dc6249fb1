#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "io/gguf_types.h"

namespace skein {

// The metadata of a GGUF file to be written, in the order of the calls. No key may be used twice.
class GgufEntries {
 public:
  void U32(std::string_view key, uint32_t value);
  void F32(std::string_view key, float value);
  void Bool(std::string_view key, bool value);
  void Text(std::string_view key, std::string_view value);
  void Texts(std::string_view key, std::span<const std::string> values);
  void I32s(std::string_view key, std::span<const int32_t> values);
  void F32s(std::string_view key, std::span<const float> values);

  uint64_t size() const { return size_; }
  const std::string& bytes() const { return bytes_; }  // the entries, as they are in the file

 private:
  void Begin(std::string_view key, uint32_t kind);
  void BeginArray(std::string_view key, uint32_t kind, size_t count);

  uint64_t size_ = 0;
  std::string bytes_;
};

struct GgufTensorSpec {
  std::string name;
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;  // row-major; a row is whole blocks of the type

  int64_t row_bytes() const { return shape.back() / type->block_elements * type->block_bytes; }
  int64_t bytes() const;
};

// Writes one GGUF file (gguf_header.h has the layout) of version 3. The data of tensors may be
// written in any order. Until Close, the file is named <path>.part. A writer that ends earlier
// removes the file.
class GgufWriter {
 public:
  // Creates the file and writes its header. Fails as OutputFile::Create does.
  static Result<GgufWriter> Create(const std::string& path, const GgufEntries& entries,
                                   std::vector<GgufTensorSpec> tensors);
  ~GgufWriter();
  GgufWriter(GgufWriter&& other) noexcept;
  GgufWriter& operator=(GgufWriter&& other) noexcept = delete;

  const std::vector<GgufTensorSpec>& tensors() const { return tensors_; }
  // The name of the unfinished file, which can be read already.
  const std::string& unfinished_path() const { return file_.path(); }
  int64_t file_bytes() const { return file_bytes_; }

  // Writes bytes of tensor `index`, from its byte `offset` on. Thread-safe.
  Status Write(size_t index, int64_t offset, std::span<const std::byte> bytes) const;

  // Closes the file and renames it to `path`, replacing a file of that name.
  Status Close();

 private:
  GgufWriter(std::string path, OutputFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;  // empty once closed
  OutputFile file_;
  std::vector<GgufTensorSpec> tensors_;
  std::vector<int64_t> begins_;  // [tensors_.size()]: offsets in the file
  int64_t file_bytes_ = 0;
};

}  // namespace skein
