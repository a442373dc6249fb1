#include "io/safetensors.h"

#include <utility>

namespace skein {

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(SafetensorsHeader header,
                         ParseSafetensorsHeader(file.bytes(), file.bytes().size(), path));
  return SafetensorsFile(std::move(file), std::move(header));
}

Result<TensorView> SafetensorsFile::Find(std::string_view name) const {
  const auto it = header_.tensors.find(name);
  if (it == header_.tensors.end()) {
    return Status(StatusCode::kNotFound, path() + " has no tensor '" + std::string(name) + "'");
  }
  const TensorInfo& info = it->second;
  if (!info.dtype) {
    return Status(StatusCode::kUnsupported, path() + ": tensor '" + std::string(name) +
                                                "' has dtype " + info.file_dtype +
                                                "; supported are F32, BF16 and F16");
  }
  return TensorView{*info.dtype, info.shape, file_.bytes().data() + info.begin,
                    static_cast<size_t>(info.end - info.begin)};
}

}  // namespace skein
