#pragma once

#include <cstdint>

#include "engine/executor.h"
#include "engine/kv_port.h"
#include "model/config/config.h"
#include "sched/config.h"

namespace skein {

// The memory that is used, on the device that computes.
struct MemoryReport {
  int64_t weight_bytes = 0;
  // A part of weight_bytes: the matrices of the layers and of the output. On a GPU 0.
  int64_t matrix_bytes = 0;
  int64_t kv_bytes = 0;        // reserved; on the processor, pages are used from the first write on
  int64_t kv_block_bytes = 0;  // of one KV block
  int64_t host_kv_bytes = 0;   // of the host, for evicted blocks; the rest is the device's
  int64_t state_bytes = 0;     // of all slots for states; pages are used as in kv_bytes
  int64_t rope_bytes = 0;
  int64_t activation_bytes = 0;  // of the most steps that existed at the same time
  int64_t planned_bytes = 0;     // the most that the largest step takes, if memory is limited
};

// A model on a device, ready to run plans. Every Task must be destroyed before the Runtime.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual Executor& executor() = 0;
  virtual KvPort& kv_port() = 0;  // access to the executor's blocks
  // Sets the boundaries at which tasks stop.
  virtual void set_granularity(Granularity granularity) = 0;
  virtual const ModelConfig& config() const = 0;
  virtual int32_t num_kv_blocks() const = 0;
  // The evicted blocks that the memory of the host keeps; 0: none.
  virtual int32_t num_host_kv_blocks() const { return 0; }
  virtual int32_t num_states() const = 0;  // 0: the model has no linear layers
  virtual int32_t max_model_len() const = 0;
  // EngineConfig::long_prompt_tokens of this device.
  virtual int32_t long_prompt_tokens() const { return 0; }
  virtual MemoryReport Memory() const = 0;
};

}  // namespace skein
