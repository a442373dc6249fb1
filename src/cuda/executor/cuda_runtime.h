#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "model/dense_module.h"
#include "model/pooling.h"
#include "model/weights/weight_choices.h"
#include "model/weights/weights.h"
#include "runtime/runtime.h"
#include "sched/config.h"
#include "skein/config.h"

namespace skein::cuda {

// The options of a model on a GPU. A value of 0 means: choose.
struct CudaRuntimeOptions {
  std::string model_dir;
  std::vector<std::string> adapters;  // as CpuRuntimeOptions::adapters
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  int32_t threads = 0;        // of the host, for loading weights and for draws
  int32_t max_model_len = 0;  // 0: the longest that the model and the KV memory allow
  int32_t max_num_batched_tokens = 512;
  int32_t long_prompt_tokens = 0;  // as CpuRuntimeOptions::long_prompt_tokens
  int32_t max_num_seqs = 16;
  Pooling pooling = Pooling::kLast;  // for embeddings
  std::vector<DenseModule> dense;    // as CpuRuntimeOptions::dense
  bool share_attention = true;       // ForwardContext::share_attention
  // At most one of these three is set. memory_bytes: all memory besides the weights, of which steps
  // get their share first, and the KV memory the rest. If all are 0, it is nine tenths of what is
  // free beside the weights. On several devices, kv_cache_bytes and memory_bytes are those of all
  // together.
  int64_t kv_cache_bytes = 0;
  int32_t num_kv_blocks = 0;
  int64_t memory_bytes = 0;
  // Memory of the host for evicted KV blocks, as DeviceKv has it; of all ranks together. 0: none.
  int64_t kv_offload_bytes = 0;
  int64_t memory_limit_bytes = 0;  // of the process (FreeMemoryBytes); 0: that of the system
  Execution execution = Execution::kPlain;
  int32_t chunk_tokens = 0;  // for hybrid execution; 0: kDeviceChunkTokens
  Retention retention = Retention::kAll;
  Granularity granularity = Granularity::kOpTile;  // the places where steps stop
  int32_t num_steps = 1;                           // as CpuRuntimeOptions::num_steps
  LoadProgress progress;
};

// Loads a model onto `device`. Fails as LoadModelConfig, LoadWeights and CheckDeviceComputes do.
// kInvalidArgument names an option that is out of range, or that does not fit in memory_bytes, or
// in the free memory of the host.
// kUnsupported, with the field kv_offload_bytes, if the model has linear layers and evicted blocks
// are to be kept: a prefix cannot go on from blocks alone there. kResourceExhausted if the device
// has not enough memory for the weights, for steps with prompts of max_model_len, or for the KV
// memory that is asked for; it names the longest prompt that fits.
Result<std::unique_ptr<Runtime>> LoadCudaRuntime(const CudaRuntimeOptions& options,
                                                 std::unique_ptr<Device> device);
// The same on several devices that compute each operator together. Fails as CheckRanks and
// Device::Connect do, too.
Result<std::unique_ptr<Runtime>> LoadCudaRuntime(const CudaRuntimeOptions& options,
                                                 std::vector<std::unique_ptr<Device>> devices);

}  // namespace skein::cuda
