#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/executor.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/dense_module.h"
#include "model/pooling.h"
#include "model/weights.h"
#include "skein/config.h"

namespace skein {

// What is asked of a model on the processor. 0: choose.
struct CpuRuntimeOptions {
  std::string model_dir;
  std::string dtype = "auto";         // auto, bf16, f32
  std::string quantization = "none";  // none, int8
  int32_t threads = 0;                // at most 1024; 0: as many as the process may run on
  bool pin_threads = false;           // each to a processor of its own
  std::optional<Isa> isa;             // nullopt: SelectIsa()
  int32_t max_model_len = 0;          // 0: as far as the model and the KV memory reach
  int32_t max_num_batched_tokens = 512;
  int32_t max_num_seqs = 16;
  Pooling pooling = Pooling::kLast;  // of embeddings
  std::vector<DenseModule> dense;    // behind the pooling, each as wide as the one before gives
  KvStorage kv_storage = KvStorage::kPaged;  // the same as the engine's
  bool share_attention = true;               // ForwardContext::share_attention
  int64_t kv_cache_bytes = 0;  // at most one of these two; neither: what max_num_seqs sequences of
  int32_t num_kv_blocks = 0;   // max_model_len need, at most half of the free memory
  LoadProgress progress;
};

// Where the memory goes.
struct MemoryReport {
  int64_t weight_bytes = 0;
  int64_t kv_bytes = 0;        // reserved; pages are taken when first written
  int64_t kv_block_bytes = 0;  // one block of all layers
  int64_t rope_bytes = 0;
  int64_t activation_bytes = 0;  // of all steps that were alive at once
};

// A model in memory, ready to run plans. Destroy every Task before it.
class CpuRuntime {
 public:
  // Fails as LoadModelConfig, LoadWeights and SelectIsa do; kInvalidArgument names an option that
  // is out of range or asks for more memory than is free, or kv_cache_bytes where it cannot hold
  // one sequence of max_model_len.
  static Result<std::unique_ptr<CpuRuntime>> Load(const CpuRuntimeOptions& options);
  virtual ~CpuRuntime() = default;

  virtual Executor& executor() = 0;
  virtual const ModelConfig& config() const = 0;
  virtual DType dtype() const = 0;         // compute type
  virtual DType matrix_dtype() const = 0;  // of the layers' and the output's matrices
  virtual Isa isa() const = 0;
  virtual int32_t num_threads() const = 0;
  virtual int32_t num_kv_blocks() const = 0;
  virtual int32_t max_model_len() const = 0;
  virtual MemoryReport Memory() const = 0;
};

}  // namespace skein
