#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/host/handover_host.h"
#include "apps/host/model_traits.h"
#include "apps/host/scheduling_options.h"
#include "base/clock.h"
#include "base/result.h"
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

// The device that computes. The emulated GPU is for trials without one, and slow.
enum class DeviceChoice : uint8_t { kCpu, kCuda, kCudaEmulated };

// The options by which a model is loaded and an engine built around it. 0: choose.
struct ModelHostOptions {
  std::string model;  // what FindModelDir takes
  DeviceChoice device = DeviceChoice::kCpu;
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  SchedulingOptions scheduling;
  std::string chat_template;            // a file; empty: the model's own
  std::optional<ToolStyle> tool_style;  // unset: as the chat template shows it
  RerankTemplate rerank_template = RerankTemplate::kAuto;
  std::optional<NamedReading> decision_reading;  // unset: that of the model's profile
  std::optional<PromptForm> decision_prompt;     // as above
  std::optional<Pooling> pooling;                // of embeddings; unset: what the model's files say
  std::vector<std::string> adapters;  // "NAME=DIR": LoRA adapters, served under these names
  // Another, as NAME=DIR or DIR, that also answers the decisions asked of the model; empty: the
  // one that comes along with a known model; "none": no adapter does.
  std::string decision_adapter;
  HandoverOptions handover;
  std::string record;                     // a file for the scheduler's events
  SchedulerObserver* observer = nullptr;  // another observer of those; outlives the host
  bool trace = false;                     // one line per scheduler iteration on stderr
  int32_t threads = 0;
  bool pin_threads = false;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 16;
  std::optional<int32_t> max_num_batched_tokens;  // unset: UsualBatchedTokens of 512
  int32_t max_queued_requests = 4096;
  double max_wait_s = 0;  // EngineConfig::max_wait_us; the server's default is another
  int32_t max_logprobs = 20;
  std::string kv_cache_memory;  // "2GiB", "512MiB", bytes; empty: choose
  std::string kv_cache_file;    // of that size; empty: in memory
  KvStorage kv_storage = KvStorage::kPaged;
  std::string memory;  // of everything beside the weights; empty: not limited
  bool enable_prefix_caching = true;
  bool no_enable_prefix_caching = false;  // the other spelling; wins
  bool plain_attention = false;           // read shared prefixes once for each request
  bool force_decode_path = false;         // run one-token requests through the decode path
  bool show_progress = true;              // loading, on stderr
};

// Adds the options of ModelHostOptions, and the positional MODEL, to a command.
void AddModelHostOptions(CLI::App* app, ModelHostOptions* options);

// The runtime's options among these, without the model's directory and without the scheduling.
// Fails with kInvalidArgument if a size cannot be read.
Result<CpuRuntimeOptions> RuntimeOptionsOf(const ModelHostOptions& options);

// The time that a command's running requests may take at its end.
inline constexpr TimeUs kShutdownUs = 5'000'000;

// A loaded model with a running engine, tokenizer and chat template: all that an application needs
// to serve it. Destroying it stops the engine.
class ModelHost {
 public:
  // Errors name the option or file that is wrong.
  static Result<std::unique_ptr<ModelHost>> Load(const ModelHostOptions& options);
  virtual ~ModelHost() = default;

  virtual Engine& engine() = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate* chat_template() const = 0;  // null: the model has none
  virtual const Clock& clock() const = 0;                 // the engine's
  virtual const ModelConfig& config() const = 0;
  // The same as the server wants it: names, engine, tokenizer, template, defaults.
  virtual const ModelEntry& entry() const = 0;
  // The same for each adapter, in the order of their ids, with its own decision profile.
  virtual const std::vector<ModelEntry>& adapters() const = 0;
  // Answers decisions asked of the model: the decision adapter's entry, or else entry().
  virtual const ModelEntry& decision_entry() const = 0;
  virtual const std::string& model_dir() const = 0;
  // The directory that holds the decision profile of decision_entry().
  virtual const std::string& decision_dir() const = 0;
  virtual int64_t kv_block_bytes() const = 0;   // of all layers
  virtual const std::string& name() const = 0;  // as the directory or org/name is called
  // Waits until nothing runs, at most timeout_us; then ends what is left with kUnavailable.
  virtual void Shutdown(TimeUs timeout_us) = 0;
};

// The model and its adapters, as requests name them.
ModelRegistry RegistryOf(const ModelHost& host);

}  // namespace skein
