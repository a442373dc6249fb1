#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace skein {

// A file that torch.save wrote: a dictionary of plain data and tensors.
struct TorchFile {
  JsonFile data;  // the dictionary, with null in place of tensors
  // The tensors by their path in the dictionary: "head.q.weight".
  SafetensorsFile tensors;
};

// Maps and checks a file that torch.save wrote: an archive without compression, with a pickle
// (torch_pickle.h) and little-endian storages. Fails with kNotFound if there is no file. Fails with
// kUnsupported or kInvalidArgument, naming the problem, for tensors that are not row-major,
// storages that overrun the file, and other content.
Result<TorchFile> OpenTorchFile(const std::string& path);

}  // namespace skein
