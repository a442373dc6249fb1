#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli_names.h"
#include "apps/host/device_choice.h"
#include "apps/host/handover_host.h"
#include "apps/host/model_traits.h"
#include "apps/host/scheduling_options.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/threads/numa.h"
#include "model/config/config.h"
#include "model/pooling.h"
#include "runtime/cpu_runtime.h"
#include "server/model_registry.h"
#include "server/tools/tool_style.h"
#include "skein/config.h"
#include "skein/decision_method.h"
#include "skein/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace skein {

class SchedulerObserver;  // sched/record/observer.h

// The options for loading a model and making its engine. A value of 0 means: choose.
struct ModelHostOptions {
  std::string model;  // any name that FindModelDir accepts
  DeviceChoice device = DeviceChoice::kCpu;
  int32_t tp = 1;                  // GPUs that share each operator
  int64_t memory_limit_bytes = 0;  // of the process; 0: that of the system
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  SchedulingOptions scheduling;
  std::string chat_template;            // a file; empty: the model's own template
  std::optional<ToolStyle> tool_style;  // unset: detected from the chat template
  bool separates_reasoning = true;      // in chats, unless the request says otherwise
  RerankTemplate rerank_template = RerankTemplate::kAuto;
  std::optional<NamedReading> decision_reading;  // unset: that of the model's profile
  std::optional<PromptForm> decision_prompt;     // unset: that of the model's profile
  std::optional<Pooling> pooling;                // of embeddings; unset: that of the model's files
  std::vector<std::string> adapters;  // "NAME=DIR": LoRA adapters, served under these names
  // A further adapter, as NAME=DIR or DIR, that answers the decisions asked of the model. Empty:
  // the decision adapter that belongs to a known model. "none": no adapter.
  std::string decision_adapter;
  HandoverOptions handover;
  std::string record;                     // file for the scheduler's events
  SchedulerObserver* observer = nullptr;  // a further observer of these events; outlives the host
  bool trace = false;                     // write a line per scheduling round to stderr
  int32_t threads = 0;
  bool pin_threads = false;
  NumaRule numa = NumaRule::kAuto;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 16;
  std::optional<int32_t> max_num_batched_tokens;  // unset: UsualBatchedTokens of 512
  int32_t max_queued_requests = 4096;
  double max_wait_s = 0;  // EngineConfig::max_wait_us; the server has another default
  bool refuses_late = false;
  int32_t max_logprobs = 20;
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;
  std::string kv_cache_memory;    // such as "2GiB", or a number of bytes; empty: choose
  std::string kv_cache_file;      // a file of that size for the KV cache; empty: in memory
  std::string kv_offload_memory;  // of the host, for blocks that a GPU evicts; empty: none
  KvStorage kv_storage = KvStorage::kPaged;
  std::string memory;  // limit for everything except the weights; empty: no limit
  bool enable_prefix_caching = true;
  bool no_enable_prefix_caching = false;  // the opposite spelling of the option; it wins
  bool plain_attention = false;           // read shared prefixes once for each request
  bool force_decode_path = false;         // run one-token requests through the decode path
  bool show_progress = true;              // of loading, on stderr
};

// Adds the options of ModelHostOptions, and the positional MODEL, to a command.
void AddModelHostOptions(CLI::App* app, ModelHostOptions* options);

// The runtime's options among these, without the model's directory and without scheduling.
// kInvalidArgument if a size cannot be parsed.
Result<CpuRuntimeOptions> RuntimeOptionsOf(const ModelHostOptions& options);

// How long a command waits at its end for running requests.
inline constexpr TimeUs kShutdownUs = 5'000'000;

// A loaded model with a running engine, tokenizer and chat template: everything that an application
// needs to serve the model. The destructor stops the engine.
class ModelHost {
 public:
  // Loads a model. Errors name the wrong option or file.
  static Result<std::unique_ptr<ModelHost>> Load(const ModelHostOptions& options);
  virtual ~ModelHost() = default;

  virtual Engine& engine() = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate* chat_template() const = 0;  // null: the model has none
  virtual const Clock& clock() const = 0;                 // of the engine
  virtual const ModelConfig& config() const = 0;
  // The model in the server's form: names, engine, tokenizer, template, defaults.
  virtual const ModelEntry& entry() const = 0;
  // The entry of each adapter, in the order of the adapters' ids, with the adapter's own decision
  // profile.
  virtual const std::vector<ModelEntry>& adapters() const = 0;
  // The entry that answers decisions asked of the model: the decision adapter's, otherwise entry().
  virtual const ModelEntry& decision_entry() const = 0;
  virtual const std::string& model_dir() const = 0;
  // The directory that holds the decision profile of decision_entry().
  virtual const std::string& decision_dir() const = 0;
  virtual int64_t kv_block_bytes() const = 0;
  virtual const std::string& name() const = 0;  // the name of the directory, or org/name
  // Waits until no request runs, at most timeout_us. Then ends the remaining requests with
  // kUnavailable.
  virtual void Shutdown(TimeUs timeout_us) = 0;
};

// The registry of the model and its adapters.
ModelRegistry RegistryOf(const ModelHost& host);

}  // namespace skein
