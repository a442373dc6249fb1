#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/gguf_types.h"
#include "io/model_files.h"

namespace skein {

// The types in which a file may be written: F32, F16, BF16, Q8_0, Q4_0, Q4_K.
std::vector<const GgufType*> WritableGgufTypes();
// The type with this name, in upper or lower case ("q4_k"); null if the name is none of these.
const GgufType* FindWritableGgufType(const std::string& name);

struct GgufExportOptions {
  std::string dir;                 // directory of the model
  std::string file;                // the file to create
  std::string adapter_dir;         // a LoRA adapter to merge (io/lora_adapter.h); empty: none
  const GgufType* type = nullptr;  // of the matrices
  const GgufType* embedding_type = nullptr;  // of the embedding and the output matrix; null: `type`
  // For rows that are not whole blocks; null: they are an error.
  const GgufType* fallback_type = nullptr;
  bool force = false;  // replace an existing file
  int num_threads = 1;
  LoadProgress progress;  // called with the elements done and their total; may be empty
};

struct GgufExportSummary {
  int64_t num_parameters = 0;
  int64_t file_bytes = 0;
  int64_t num_fallbacks = 0;  // matrices in the fallback type
};

// Writes the model of a decoder's directory as one GGUF file, with tokenizer and chat template.
// Matrices are widened to f32, the adapter is added, and the sum is rounded once: by
// QuantizeBlocks, or to the nearest value. Norms and biases are f32. Rows of q and k of the Llama
// family are interleaved. The header is read back before the weights are written: if the file
// cannot express a setting of the model, the error is kUnsupported and names the setting. A failure
// leaves no file.
Result<GgufExportSummary> ExportGguf(const GgufExportOptions& options);

}  // namespace skein
