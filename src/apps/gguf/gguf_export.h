#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/gguf_types.h"
#include "io/model_files.h"

namespace skein {

// The types that a file may be written in: F32, F16, BF16, Q8_0, Q4_0, Q4_K.
std::vector<const GgufType*> WritableGgufTypes();
// The type of a name in any case ("q4_k"); null: it is none of these.
const GgufType* FindWritableGgufType(const std::string& name);

struct GgufExportOptions {
  std::string dir;                 // of the model
  std::string file;                // created
  std::string adapter_dir;         // a LoRA adapter to merge (io/lora_adapter.h); empty: none
  const GgufType* type = nullptr;  // of the matrices
  const GgufType* embedding_type = nullptr;  // of the embedding and the output's; null: `type`
  const GgufType* fallback_type = nullptr;   // where rows are no whole blocks; null: an error
  bool force = false;                        // replace the file
  int num_threads = 1;
  LoadProgress progress;  // elements done, of how many; may be empty
};

struct GgufExportSummary {
  int64_t num_parameters = 0;
  int64_t file_bytes = 0;
  int64_t num_fallbacks = 0;  // matrices in the fallback type
};

// Writes a decoder's directory as one GGUF file with its tokenizer and chat template. Matrices are
// widened to f32, the adapter is added, and the sum is rounded once, by QuantizeBlocks or to the
// nearest; norms and biases are f32. Rows of q and k of the Llama family are interleaved. The
// header is read back before the weights are written: kUnsupported, by name, for what the file
// cannot say of the model. A failure leaves no file.
Result<GgufExportSummary> ExportGguf(const GgufExportOptions& options);

}  // namespace skein
