#include "io/gguf_file.h"

#include "base/check.h"

namespace skein {

int64_t GgufTensor::num_rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

void GgufTensor::ReadRows(int64_t first_row, int64_t num_rows_read, float* out) const {
  SKEIN_CHECK(first_row >= 0 && num_rows_read >= 0 && num_rows_read <= num_rows() - first_row);
  const int64_t row_blocks = row_elements() / type->block_elements;
  type->dequantize(data + first_row * row_blocks * type->block_bytes, num_rows_read * row_blocks,
                   out);
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(GgufHeader header, ParseGgufHeader(file.bytes(), path));
  return GgufFile(std::move(file), std::move(header));
}

std::vector<std::string> GgufFile::Names() const {
  std::vector<std::string> names;
  names.reserve(header_.tensors.size());
  for (const auto& entry : header_.tensors) names.push_back(entry.first);
  return names;
}

Result<GgufTensor> GgufFile::Find(std::string_view name) const {
  const auto it = header_.tensors.find(name);
  if (it == header_.tensors.end()) {
    return Status(StatusCode::kNotFound, path() + " has no tensor '" + std::string(name) + "'");
  }
  const GgufTensorInfo& info = it->second;
  return GgufTensor{info.type, info.shape, file_.bytes().data() + info.begin};
}

}  // namespace skein
