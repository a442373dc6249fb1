#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace skein {

// A file that torch.save wrote: a dictionary of plain data and tensors.
struct TorchFile {
  JsonFile data;  // the dictionary; a tensor is null in it
  // The tensors by their path in the dictionary: "head.q.weight".
  SafetensorsFile tensors;
};

// Maps and checks such a file: an archive that is not compressed, with a pickle (torch_pickle.h)
// and little-endian storages. kNotFound if there is none. kUnsupported or kInvalidArgument names
// what the file has beyond that: tensors that are not row-major, storages that overrun the file.
Result<TorchFile> OpenTorchFile(const std::string& path);

}  // namespace skein
