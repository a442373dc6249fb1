#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/executor.h"
#include "engine/kv_port.h"
#include "kernels/kernels.h"
#include "model/config/config.h"
#include "model/dense_module.h"
#include "model/forward/workspace.h"
#include "model/pooling.h"
#include "model/weights/weights.h"
#include "sched/config.h"
#include "skein/config.h"
#include "skein/request.h"

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
  // The KV memory lies in a file made there (AlignedBuffer::InFile), as large as kv_cache_bytes
  // says, and may be larger than the memory of the machine.
  std::string kv_cache_file;
  // Instead of those: all that is taken beside the weights. What a prompt of max_model_len tokens
  // needs for itself comes first (a profile run at the start tells what that is beyond the sizes of
  // its buffers); the rest is the KV memory.
  int64_t memory_bytes = 0;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Granularity granularity = Granularity::kOpTile;  // where steps stop
  // That keep state at a time, at least 1; where that is more than one, a step of decodes alone
  // runs beside them.
  int32_t num_steps = 1;
  int32_t chunk_tokens = 0;  // of hybrid execution
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  LoadProgress progress;
  std::function<void()> weights_loaded;  // called once they are; of the rest nothing is taken yet
};

// Where the memory goes.
struct MemoryReport {
  int64_t weight_bytes = 0;
  int64_t kv_bytes = 0;        // reserved; pages are taken when first written
  int64_t kv_block_bytes = 0;  // one block of all layers
  int64_t rope_bytes = 0;
  int64_t activation_bytes = 0;  // of all steps that were alive at once
  int64_t planned_bytes = 0;     // where memory is limited: what the largest step takes at most
};

// What a model with this head answers.
OutputSpec OutputOf(Head head);

// A model in memory, ready to run plans. Destroy every Task before it.
class CpuRuntime {
 public:
  // Fails as LoadModelConfig, LoadWeights and SelectIsa do; kInvalidArgument names an option that
  // is out of range or asks for more memory than is free, or kv_cache_bytes or memory_bytes where
  // it cannot hold one sequence of max_model_len.
  static Result<std::unique_ptr<CpuRuntime>> Load(const CpuRuntimeOptions& options);
  virtual ~CpuRuntime() = default;

  virtual Executor& executor() = 0;
  virtual KvPort& kv_port() = 0;  // of the executor's blocks
  // As CpuExecutor's.
  virtual void set_granularity(Granularity granularity) = 0;
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
