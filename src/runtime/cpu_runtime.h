#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/numa.h"
#include "base/threads/thread_team.h"
#include "engine/executor.h"
#include "engine/kv_port.h"
#include "kernels/kernels.h"
#include "model/config/config.h"
#include "model/dense_module.h"
#include "model/forward/workspace.h"
#include "model/pooling.h"
#include "model/weights/weight_choices.h"
#include "model/weights/weights.h"
#include "runtime/runtime.h"
#include "sched/config.h"
#include "skein/config.h"
#include "skein/request.h"

namespace skein {

// The options of a model on the processor. A value of 0 lets the runtime choose.
struct CpuRuntimeOptions {
  std::string model_dir;
  std::vector<std::string> adapters;  // directories of LoRA adapters: ids from 1 on
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;  // kInt8 is not for encoders
  int32_t threads = 0;       // at most 1024; 0: all processors that the process may use
  bool pin_threads = false;  // each thread to its own processor
  NumaRule numa = NumaRule::kAuto;
  std::string numa_folder = kNumaFolder;  // describes the machine's memory nodes (NumaNodes)
  std::optional<Isa> isa;                 // nullopt: as SelectIsa() chooses
  int32_t max_model_len = 0;              // 0: the longest that the model and the KV memory allow
  int32_t max_num_batched_tokens = 512;
  // EngineConfig::long_prompt_tokens; fewer where they would take more than half of the memory that
  // is free.
  int32_t long_prompt_tokens = 0;
  int32_t max_num_seqs = 16;
  Pooling pooling = Pooling::kLast;  // for embeddings
  std::vector<DenseModule> dense;    // after the pooling; each module reads the output of the one
                                     // before
  KvStorage kv_storage = KvStorage::kPaged;  // the same as the engine's
  bool share_attention = true;               // ForwardContext::share_attention
  // At most one of kv_cache_bytes and num_kv_blocks is set. If neither is set, the KV memory holds
  // max_num_seqs sequences of max_model_len, in at most half of the free memory.
  int64_t kv_cache_bytes = 0;
  int32_t num_kv_blocks = 0;
  int32_t num_states = 0;  // slots for states, for a model with linear layers; 0: as StatesFor
  // A file at this path contains the KV memory (AlignedBuffer::InFile). Its size is kv_cache_bytes,
  // which may exceed the memory of the machine.
  std::string kv_cache_file;
  // All memory besides the weights; an alternative to the options above. First, a prompt of
  // max_model_len tokens gets its share; a profile run at the start measures how much it needs
  // beyond its buffers. The rest is the KV memory.
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;  // of the whole process; 0: that of the system
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  Granularity granularity = Granularity::kOpTile;  // where steps stop
  // The most steps that keep state at the same time, at least 1. If there is more than one, a step
  // of decodes alone runs beside them.
  int32_t num_steps = 1;
  int32_t chunk_tokens = 0;  // for hybrid execution
  ChunkOutputs chunk_outputs = ChunkOutputs::kInPlace;
  LoadProgress progress;
  std::function<void()> weights_loaded;  // called before any other memory is taken
};

// The output of a model with this head.
OutputSpec OutputOf(Head head);

// A model in memory, ready to run plans on the processor.
class CpuRuntime : public Runtime {
 public:
  // Fails as LoadModelConfig, LoadWeights and SelectIsa do. Also fails with kInvalidArgument,
  // naming the option, if an option is out of range or asks for more memory than is free, or if
  // kv_cache_bytes or memory_bytes cannot hold one sequence of max_model_len.
  static Result<std::unique_ptr<CpuRuntime>> Load(const CpuRuntimeOptions& options);

  virtual DType dtype() const = 0;         // compute type
  virtual DType kv_dtype() const = 0;      // of the KV cache
  virtual DType matrix_dtype() const = 0;  // the type of the layers' and the output's matrices
  // Its name; that of their format if they were rounded to blocks.
  virtual std::string_view matrix_name() const = 0;
  virtual Isa isa() const = 0;
  virtual int32_t num_threads() const = 0;
  // The rule that holds, never kAuto; kOff on a machine with one memory node.
  virtual NumaRule numa() const = 0;
};

}  // namespace skein
