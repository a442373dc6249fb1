#include "apps/host/model_host.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "apps/host/decision_model_traits.h"
#include "apps/host/decision_profile.h"
#include "apps/host/generation_config.h"
#include "apps/host/late_interaction_traits.h"
#include "apps/host/model_choices.h"
#include "apps/host/model_traits.h"
#include "apps/model/model_cache.h"
#include "apps/read_file.h"
#include "apps/sim/stop_table_writer.h"
#include "base/byte_size.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_runtime.h"
#include "engine/cost_profile.h"
#include "engine/decode_profile.h"
#include "engine/engine_loop.h"
#include "engine/idle_profile.h"
#include "runtime/cpu_runtime.h"
#include "sched/config.h"
#include "sched/policies.h"
#include "sched/record/recorder.h"
#include "sched/record/trace_printer.h"
#include "server/decisions/decision_prompt.h"
#include "server/generation/grammar_fields.h"
#include "server/reasoning/harmony_parser.h"

namespace skein {
namespace {

Result<std::unique_ptr<ChatTemplate>> LoadChatTemplate(const std::string& model_dir,
                                                       const std::string& file) {
  if (!file.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const std::string source, ReadFile(file));
    return ChatTemplate::Parse(source);
  }
  auto loaded = ChatTemplate::Load(model_dir);
  // A model without a template can be used for everything except chat.
  if (!loaded.ok() && loaded.status().code() == StatusCode::kNotFound)
    return std::unique_ptr<ChatTemplate>();
  return loaded;
}

// Shows progress on stderr: a terminal gets a line that counts, other outputs a line per quarter.
LoadProgress ShowProgress(const std::string& name) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [name, terminal, last = -1](int64_t done_bytes, int64_t total_bytes) mutable {
    int percent = total_bytes > 0 ? static_cast<int>(done_bytes * 100 / total_bytes) : 100;
    if (!terminal) percent -= percent % 25;
    if (percent == last) return;
    last = percent;
    std::fprintf(stderr, "%sloading %s: %3d %% of %s%s", terminal ? "\r" : "", name.c_str(),
                 percent, FormatByteSize(total_bytes).c_str(),
                 !terminal || percent == 100 ? "\n" : "");
  };
}

// The scheduler's configuration by the options. Limits of the model are not part of it.
Result<SchedulerConfig> SchedulerOf(const ModelHostOptions& options) {
  constexpr int32_t kUsualBatchedTokens = 512;
  SKEIN_ASSIGN_OR_RETURN(SchedulerConfig config, SchedulerConfigOf(options.scheduling));
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens =
      options.max_num_batched_tokens.value_or(UsualBatchedTokens(config, kUsualBatchedTokens));
  config.kv_storage = options.kv_storage;
  config.prefix_caching = options.enable_prefix_caching && !options.no_enable_prefix_caching;
  config.force_decode_path = options.force_decode_path;
  return config;
}

// The longest prompt that a step takes by default where prompts run whole.
constexpr int32_t kUsualLongPrompt = 8192;

// A model that reads prompts whole reads a long one in a step of its own. A decision model that
// does not still reads the options of a question in one step. Within --memory, steps have room for
// the usual question alone.
void MakeRoomForLongPrompts(const ModelHostOptions& options, const ModelTraits& traits,
                            CpuRuntimeOptions* runtime, EngineConfig* config) {
  if (options.max_num_batched_tokens) return;
  if (config->reads_whole_prompts && options.memory.empty()) {
    runtime->long_prompt_tokens = kUsualLongPrompt;
    return;
  }
  if (!traits.decision_model) return;
  for (int32_t* tokens :
       {&runtime->max_num_batched_tokens, &config->scheduler.max_num_batched_tokens}) {
    *tokens = std::max(*tokens, traits.decision_model->usual_len);
  }
}

// An adapter and the name that requests use for it.
struct NamedAdapter {
  std::string name, dir;
};

constexpr char kNoAdapter[] = "none";

// Parses NAME=DIR; nullopt if `text` has another form.
std::optional<NamedAdapter> ParseAdapter(const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == 0 || sign == std::string::npos || sign + 1 == text.size()) return std::nullopt;
  return NamedAdapter{text.substr(0, sign), text.substr(sign + 1)};
}

// The adapters of --lora in their order, then the decision adapter unless it is one of these.
class NamedAdapters {
 public:
  explicit NamedAdapters(std::string model_name) : model_name_(std::move(model_name)) {}

  // Parses --lora and --decision-lora. The names must differ from each other and from the model's
  // name.
  Status Init(const ModelHostOptions& options, const std::string& model_dir) {
    for (const std::string& text : options.adapters) {
      const std::optional<NamedAdapter> adapter = ParseAdapter(text);
      if (!adapter) return Malformed("--lora", text, "NAME=DIR");
      SKEIN_RETURN_IF_ERROR(Add("--lora", *adapter));
    }
    const std::string& text = options.decision_adapter;
    if (text == kNoAdapter) return Status::Ok();
    const std::string dir = text.empty() ? DecisionAdapterOf(model_dir) : text;
    if (dir.empty()) return Status::Ok();
    std::optional<NamedAdapter> adapter = NamedAdapter{NameOfModel(dir), dir};
    if (text.find('=') != std::string::npos) adapter = ParseAdapter(text);
    if (!adapter) return Malformed("--decision-lora", text, "DIR, NAME=DIR or none");
    // If --lora has an adapter of the same name, that adapter answers decisions, provided that it
    // is the same adapter or that --decision-lora was not given.
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].name != adapter->name || (!text.empty() && !IsSame(all_[i], *adapter))) continue;
      of_decisions_ = i;
      return Status::Ok();
    }
    of_decisions_ = all_.size();
    return Add("--decision-lora", *std::move(adapter));
  }

  const std::vector<NamedAdapter>& all() const { return all_; }
  // The index in all() of the adapter that answers decisions; unset if none does.
  std::optional<size_t> of_decisions() const { return of_decisions_; }

 private:
  static bool IsSame(const NamedAdapter& a, const NamedAdapter& b) {
    std::error_code error;  // a directory that does not exist is not equivalent to any other
    return std::filesystem::equivalent(a.dir, b.dir, error);
  }

  static Status Malformed(const std::string& option, const std::string& text,
                          const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument, option + " is '" + text + "', must be " + allowed);
  }

  Status Add(const std::string& option, NamedAdapter adapter) {
    const bool taken = std::ranges::any_of(
        all_, [&](const NamedAdapter& other) { return other.name == adapter.name; });
    if (taken || adapter.name == model_name_) {
      return Status(StatusCode::kInvalidArgument,
                    option + " names '" + adapter.name + "', which is taken already");
    }
    all_.push_back(std::move(adapter));
    return Status::Ok();
  }

  const std::string model_name_;
  std::vector<NamedAdapter> all_;
  std::optional<size_t> of_decisions_;
};

class CpuModelHost final : public ModelHost {
 public:
  ~CpuModelHost() override { Shutdown(0); }

  Status Init(const ModelHostOptions& options);

  Engine& engine() override { return *entry_.engine; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return chat_template_.get(); }
  const Clock& clock() const override { return clock_; }
  const ModelConfig& config() const override { return runtime_->config(); }
  const std::string& model_dir() const override { return model_dir_; }
  const ModelEntry& entry() const override { return entry_; }
  const std::vector<ModelEntry>& adapters() const override { return adapters_; }
  const ModelEntry& decision_entry() const override {
    return decision_adapter_ ? adapters_[*decision_adapter_] : entry_;
  }
  const std::string& decision_dir() const override { return decision_dir_; }
  int64_t kv_block_bytes() const override { return runtime_->Memory().kv_block_bytes; }
  const std::string& name() const override { return name_; }

  void Shutdown(TimeUs timeout_us) override {
    if (engine_ == nullptr) return;
    engine_->Drain(timeout_us);
    if (handover_ != nullptr) handover_->Stop();
    engine_->Shutdown();
  }

 private:
  Status InitObservers(const ModelHostOptions& options, std::vector<SchedulerObserver*>* observers);
  Status ProfileIfNeeded(EngineConfig* config, std::unique_ptr<IdleProfile>* later);
  Status InitHandover(const ModelHostOptions& options, const EngineConfig& config,
                      const NamedAdapters& adapters);
  Status CompleteTraits(const ModelHostOptions& options, const ModelConfig& config, ModelUse* use);
  Status InitEntry(const ModelHostOptions& options, const ModelTraits& traits,
                   const SchedulerConfig& scheduler);
  Status AddAdapterEntry(const NamedAdapter& adapter, const ModelHostOptions& options);

  std::string model_dir_, decision_dir_;
  std::optional<size_t> decision_adapter_;  // index in adapters_
  std::string name_;
  MonotonicClock clock_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  std::unique_ptr<Runtime> runtime_;
  std::ofstream record_file_;
  std::optional<SchedulerRecorder> recorder_;
  std::optional<StopTableWriter> table_writer_;
  std::optional<TracePrinter> trace_printer_;
  std::unique_ptr<EngineLoop> engine_;  // destroyed before the objects that it uses
  std::unique_ptr<HandoverHost> handover_;
  ModelEntry entry_;
  std::vector<ModelEntry> adapters_;
};

// kUnsupported for an option that works only on the CPU.
Status CheckCudaHas(const CpuRuntimeOptions& options) {
  const auto refuse = [](const std::string& option) {
    return Status(StatusCode::kUnsupported,
                  option + " is for --device cpu; the device cuda does not have it yet", option);
  };
  if (!options.kv_cache_file.empty()) return refuse("--kv-cache-file");
  if (options.kv_storage != KvStorage::kPaged) return refuse("--kv-storage contiguous");
  if (options.kv_cache_dtype != KvCacheType::kAuto) return refuse("--kv-cache-dtype int8");
  return Status::Ok();
}

// Whether a GPU is of the generation that the kernels have run on (docs/results/gpu.md).
bool IsHopper(const std::string& gpu) {
  const auto named = [&](const char* name) { return gpu.find(name) != std::string::npos; };
  return named("H100") || named("H200") || named("H800") || named("H20");
}

// Opens the GPUs that compute together.
Result<std::vector<std::unique_ptr<cuda::Device>>> OpenDevices(DeviceChoice choice, int32_t count) {
  std::vector<std::unique_ptr<cuda::Device>> devices;
  const bool emulated = choice == DeviceChoice::kCudaEmulated;
  for (int32_t index = 0; index < count; ++index) {
    if (emulated) {
      devices.push_back(std::make_unique<cuda::FakeDevice>());
    } else {
      SKEIN_ASSIGN_OR_RETURN(devices.emplace_back(), cuda::OpenCudaDevice(index));
    }
  }
  for (const auto& device : devices) {
    if (device->name() == devices[0]->name()) continue;
    return Status(StatusCode::kInvalidArgument,
                  "--tp is " + std::to_string(count) + ", and the GPUs are a " +
                      devices[0]->name() + " and a " + device->name() +
                      "; they must be of one kind, for equal bits (CUDA_VISIBLE_DEVICES)",
                  "tp");
  }
  if (emulated) {
    spdlog::warn("an emulated GPU computes: slow, and for trials alone");
  } else if (!IsHopper(devices[0]->name())) {
    spdlog::warn("the kernels have never run on a {} before this release (docs/gpu.md)",
                 devices[0]->name());
  }
  if (!emulated && count > 1) {
    spdlog::warn("no machine with several GPUs has run --tp before this release (docs/gpu.md)");
  }
  return devices;
}

// The bytes of --kv-offload-memory; 0 without it. Fails unless the device, the model and the other
// options have a use for it.
Result<int64_t> KvOffloadBytes(const ModelHostOptions& options, const EngineConfig& config) {
  if (options.kv_offload_memory.empty()) return 0;
  const auto refuse = [](const std::string& why) {
    return Status(StatusCode::kInvalidArgument, "--kv-offload-memory " + why, "kv-offload-memory");
  };
  if (options.device == DeviceChoice::kCpu) {
    return refuse("is for --device cuda; on processors, --kv-cache-memory is the host's already");
  }
  if (!config.scheduler.prefix_caching) return refuse("needs --enable-prefix-caching");
  if (config.reads_whole_prompts) {
    return refuse("needs a model that caches prefixes; this one computes prompts whole");
  }
  return ParseByteSize("kv-offload-memory", options.kv_offload_memory);
}

Result<std::unique_ptr<Runtime>> LoadRuntime(DeviceChoice device, int32_t tp,
                                             int64_t kv_offload_bytes,
                                             const CpuRuntimeOptions& options) {
  if (device == DeviceChoice::kCpu) {
    if (tp > 1) {
      return Status(StatusCode::kInvalidArgument,
                    "--tp is for --device cuda; on processors, --threads share each operator",
                    "tp");
    }
    SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<CpuRuntime> runtime, CpuRuntime::Load(options));
    if (runtime->numa() != NumaRule::kOff) {
      spdlog::info("the machine has several memory nodes; --numa {}", NameOf(runtime->numa()));
    }
    return std::unique_ptr<Runtime>(std::move(runtime));
  }
  SKEIN_RETURN_IF_ERROR(CheckCudaHas(options));
  SKEIN_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<cuda::Device>> devices,
                         OpenDevices(device, tp));
  return cuda::LoadCudaRuntime({.model_dir = options.model_dir,
                                .adapters = options.adapters,
                                .dtype = options.dtype,
                                .quantization = options.quantization,
                                .threads = options.threads,
                                .max_model_len = options.max_model_len,
                                .max_num_batched_tokens = options.max_num_batched_tokens,
                                .long_prompt_tokens = options.long_prompt_tokens,
                                .max_num_seqs = options.max_num_seqs,
                                .pooling = options.pooling,
                                .dense = options.dense,
                                .share_attention = options.share_attention,
                                .kv_cache_bytes = options.kv_cache_bytes,
                                .memory_bytes = options.memory_bytes,
                                .kv_offload_bytes = kv_offload_bytes,
                                .memory_limit_bytes = options.memory_limit_bytes,
                                .execution = options.execution,
                                .retention = options.retention,
                                .granularity = options.granularity,
                                .num_steps = options.num_steps,
                                .progress = options.progress},
                               std::move(devices));
}

// The settings of the engine that do not depend on the model.
Result<EngineConfig> EngineConfigOf(const ModelHostOptions& options) {
  EngineConfig config = {.max_queued_requests = options.max_queued_requests,
                         .max_wait_us = static_cast<TimeUs>(options.max_wait_s * 1e6),
                         .refuses_late = options.refuses_late,
                         .max_logprobs = options.max_logprobs};
  SKEIN_ASSIGN_OR_RETURN(config.scheduler, SchedulerOf(options));
  if (!options.scheduling.stop_table.empty()) {
    SKEIN_RETURN_IF_ERROR(ReadStopTable(options.scheduling.stop_table, &config.scheduler));
  }
  return config;
}

// Adds to the traits what the options and the tokenizer say.
Status CpuModelHost::CompleteTraits(const ModelHostOptions& options, const ModelConfig& config,
                                    ModelUse* use) {
  if (use->traits.decision_model && (options.decision_reading || options.decision_prompt)) {
    return Status(StatusCode::kInvalidArgument,
                  "--decision-reading and --decision-prompt are for language models; the model is "
                  "a " +
                      config.ArchitectureName() + ", which answers with its head alone");
  }
  if (use->colbert) {
    SKEIN_RETURN_IF_ERROR(
        SetLateInteraction(*use->colbert, *tokenizer_, TokenizerDirOf(model_dir_), &use->traits));
  }
  return SetRerankTemplate(options.rerank_template, config, &use->traits);
}

Status CpuModelHost::Init(const ModelHostOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(model_dir_, FindModelDir(options.model));
  name_ = NameOfModel(options.model);
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig model_config, LoadModelConfig(model_dir_));
  SKEIN_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(TokenizerDirOf(model_dir_)));
  SKEIN_ASSIGN_OR_RETURN(chat_template_,
                         LoadChatTemplate(TokenizerDirOf(model_dir_), options.chat_template));

  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime, RuntimeOptionsOf(options));
  runtime.model_dir = model_dir_;
  SKEIN_ASSIGN_OR_RETURN(ModelUse use,
                         LoadModelTraits(model_dir_, name_, model_config, options.pooling));
  SKEIN_RETURN_IF_ERROR(CompleteTraits(options, model_config, &use));
  if (runtime.max_model_len == 0 && use.max_seq_length > 0) {
    runtime.max_model_len = std::min(use.max_seq_length, model_config.max_position);
  }
  runtime.pooling = use.pooling;
  runtime.dense = use.dense;
  SKEIN_ASSIGN_OR_RETURN(EngineConfig config, EngineConfigOf(options));
  config.reads_whole_prompts = model_config.bidirectional || use.pooling != Pooling::kLast ||
                               (use.traits.decision_model && !use.traits.decision_model->kev);
  MakeRoomForLongPrompts(options, use.traits, &runtime, &config);
  NamedAdapters adapters(name_);
  SKEIN_RETURN_IF_ERROR(adapters.Init(options, model_dir_));
  for (const NamedAdapter& adapter : adapters.all()) runtime.adapters.push_back(adapter.dir);
  config.scheduler.num_adapters = 1 + static_cast<int32_t>(adapters.all().size());
  if (options.show_progress) runtime.progress = ShowProgress(name_);
  SKEIN_ASSIGN_OR_RETURN(const int64_t kv_offload_bytes, KvOffloadBytes(options, config));
  SKEIN_ASSIGN_OR_RETURN(runtime_,
                         LoadRuntime(options.device, options.tp, kv_offload_bytes, runtime));

  config.vocab_size = runtime_->config().vocab_size;
  config.scheduler.max_model_len = runtime_->max_model_len();
  config.scheduler.num_kv_blocks = runtime_->num_kv_blocks();
  config.scheduler.num_host_kv_blocks = runtime_->num_host_kv_blocks();
  config.scheduler.num_states = runtime_->num_states();
  config.generates = use.traits.generates;
  config.embeds = use.traits.embeds || use.traits.late_interaction;
  config.classifies = use.traits.classifies;
  config.decides = use.traits.decision_model.has_value();
  config.num_actions = model_config.decision.num_actions;
  config.long_prompt_tokens = runtime_->long_prompt_tokens();
  std::unique_ptr<IdleProfile> profile;
  SKEIN_RETURN_IF_ERROR(ProfileIfNeeded(&config, &profile));
  std::vector<SchedulerObserver*> observers;
  SKEIN_RETURN_IF_ERROR(InitObservers(options, &observers));
  SKEIN_ASSIGN_OR_RETURN(
      engine_, MakeEngine(config, &runtime_->executor(), &clock_, observers, std::move(profile)));
  SKEIN_RETURN_IF_ERROR(InitHandover(options, config, adapters));

  SKEIN_RETURN_IF_ERROR(InitEntry(options, use.traits, config.scheduler));
  for (const NamedAdapter& adapter : adapters.all()) {
    SKEIN_RETURN_IF_ERROR(AddAdapterEntry(adapter, options));
  }
  decision_dir_ = model_dir_;
  decision_adapter_ = adapters.of_decisions();
  if (decision_adapter_) {
    const NamedAdapter& adapter = adapters.all()[*decision_adapter_];
    entry_.decision_adapter = adapter.name;
    decision_dir_ = adapter.dir;
    spdlog::info("the adapter {} answers decisions that are asked of {}", adapter.name, name_);
  }
  return Status::Ok();
}

// Sets all members of the entry that adapters do not change.
Status CpuModelHost::InitEntry(const ModelHostOptions& options, const ModelTraits& traits,
                               const SchedulerConfig& scheduler) {
  entry_.names = {name_};
  entry_.engine = engine_.get();
  if (handover_ != nullptr && handover_->engine() != nullptr) entry_.engine = handover_->engine();
  entry_.tokenizer = tokenizer_.get();
  entry_.chat_template = chat_template_.get();
  if (chat_template_ != nullptr) {
    entry_.tools = DetectToolFormat(*chat_template_);
    entry_.reasoning.style = DetectReasoningStyle(*chat_template_);
  }
  entry_.reasoning.separates = options.separates_reasoning;
  entry_.tools.style = options.tool_style.value_or(entry_.tools.style);
  entry_.max_model_len = scheduler.max_model_len;
  entry_.max_kv_tokens = int64_t{scheduler.num_kv_blocks} * kBlockTokens;
  entry_.traits = traits;
  SKEIN_ASSIGN_OR_RETURN(entry_.defaults,
                         LoadGenerationDefaults(model_dir_, runtime_->config(), *tokenizer_));
  if (entry_.reasoning.style == ReasoningStyle::kHarmony) {
    AddHarmonyEnds(*tokenizer_, &entry_.defaults.eos_token_ids);
  }
  entry_.grammars = MakeGrammarCompiler(entry_);
  if (!traits.decision_model) {
    SKEIN_ASSIGN_OR_RETURN(
        entry_.traits.decisions,
        LoadDecisionProfile({model_dir_, name_, runtime_->config().NumParameters(), traits,
                             options.decision_reading, options.decision_prompt}));
  }
  entry_.traits.space_before_answer = WritesSpaceBeforeAnswer(entry_);
  return Status::Ok();
}

// Adds the entry of an adapter. It is a copy of the model's entry, except for the cached baselines
// and for the decision profile that the adapter's directory may hold.
Status CpuModelHost::AddAdapterEntry(const NamedAdapter& adapter, const ModelHostOptions& options) {
  ModelEntry entry = entry_;
  const ModelEntry fresh;
  entry.names = {adapter.name};
  entry.parent = entry_.name();
  entry.adapter_id = static_cast<int32_t>(adapters_.size()) + 1;
  entry.baselines = fresh.baselines;
  entry.warned_us = fresh.warned_us;
  if (std::filesystem::exists(std::filesystem::path(adapter.dir) / kDecisionProfileFile)) {
    SKEIN_ASSIGN_OR_RETURN(
        entry.traits.decisions,
        LoadDecisionProfile({adapter.dir, adapter.name, config().NumParameters(), entry.traits,
                             options.decision_reading, options.decision_prompt}));
  }
  adapters_.push_back(std::move(entry));
  return Status::Ok();
}

// Times a few steps if a policy, or the way decodes run beside prompts, depends on the times of
// steps. Most users of the default order do not need exact times at once: it begins with those of a
// few short steps, and `*later` measures more.
Status CpuModelHost::ProfileIfNeeded(EngineConfig* config, std::unique_ptr<IdleProfile>* later) {
  SKEIN_ASSIGN_OR_RETURN(const SchedulerConfig scheduler, MakeSchedulerConfig(*config));
  StepProfiler profiler(&runtime_->executor(), &clock_, config->vocab_size, scheduler.num_kv_blocks,
                        OutputOf(runtime_->config().head), scheduler.policies.retention);
  const bool waits = scheduler.policies.order == Order::kAuto;
  if (NeedsCosts(scheduler)) {
    CostProfileLimits limits = ProfileLimitsOf(scheduler);
    if (waits) limits.time_us = kFirstProfileUs;
    config->scheduler.cost = FitCosts(ProfileCosts(profiler, clock_, limits));
  }
  if (waits) {
    *later = std::make_unique<IdleProfile>(profiler, &clock_, scheduler);
    return Status::Ok();
  }
  if (NeedsDecodeCosts(scheduler) && scheduler.kv_storage == KvStorage::kPaged) {
    config->scheduler.decode_cost =
        FitDecodes(ProfileSharedDecodes(profiler, clock_, DecodeProfileLimitsOf(scheduler)));
  }
  return Status::Ok();
}

Status CpuModelHost::InitHandover(const ModelHostOptions& options, const EngineConfig& config,
                                  const NamedAdapters& adapters) {
  if (!options.handover.any()) return Status::Ok();
  auto* const runtime = dynamic_cast<CpuRuntime*>(runtime_.get());
  if (runtime == nullptr) {
    return {StatusCode::kUnsupported,
            "--role is for --device cpu; the device cuda does not have it yet", "role"};
  }
  SKEIN_ASSIGN_OR_RETURN(const SchedulerConfig scheduler, MakeSchedulerConfig(config));
  SKEIN_RETURN_IF_ERROR(HandoverHost::Check(scheduler, *runtime, !options.record.empty()));
  HandoverHost::Parts parts{
      .runtime = runtime, .engine = engine_.get(), .clock = &clock_, .model_dir = model_dir_};
  for (const NamedAdapter& adapter : adapters.all()) parts.adapter_dirs.push_back(adapter.dir);
  SKEIN_ASSIGN_OR_RETURN(handover_, HandoverHost::Make(options.handover, parts));
  return Status::Ok();
}

Status CpuModelHost::InitObservers(const ModelHostOptions& options,
                                   std::vector<SchedulerObserver*>* observers) {
  if (!options.record.empty()) {
    record_file_.open(options.record);
    if (!record_file_)
      return Status(StatusCode::kInvalidArgument, "--record: cannot write " + options.record);
    recorder_.emplace(&record_file_);
    observers->push_back(&*recorder_);
  }
  if (!options.scheduling.stop_table.empty()) {
    table_writer_.emplace(options.scheduling.stop_table);
    observers->push_back(&*table_writer_);
  }
  if (options.trace) {
    trace_printer_.emplace(&std::cerr);
    observers->push_back(&*trace_printer_);
  }
  if (options.observer != nullptr) observers->push_back(options.observer);
  return Status::Ok();
}

}  // namespace

Result<CpuRuntimeOptions> RuntimeOptionsOf(const ModelHostOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const SchedulerConfig scheduler, SchedulerOf(options));
  CpuRuntimeOptions runtime;
  runtime.execution = scheduler.policies.execution;
  runtime.retention = scheduler.policies.retention;
  runtime.granularity = scheduler.policies.granularity;
  runtime.num_steps = NumSteps(scheduler);
  runtime.dtype = options.dtype;
  runtime.quantization = options.quantization;
  runtime.threads = options.threads;
  runtime.pin_threads = options.pin_threads;
  runtime.numa = options.numa;
  runtime.kv_cache_dtype = options.kv_cache_dtype;
  runtime.kv_storage = scheduler.kv_storage;
  runtime.share_attention = !options.plain_attention;
  runtime.max_model_len = options.max_model_len;
  runtime.max_num_seqs = scheduler.max_num_seqs;
  runtime.max_num_batched_tokens = scheduler.max_num_batched_tokens;
  if (!options.kv_cache_memory.empty()) {
    SKEIN_ASSIGN_OR_RETURN(runtime.kv_cache_bytes,
                           ParseByteSize("kv-cache-memory", options.kv_cache_memory));
  }
  runtime.kv_cache_file = options.kv_cache_file;
  if (!options.memory.empty()) {
    SKEIN_ASSIGN_OR_RETURN(runtime.memory_bytes, ParseByteSize("memory", options.memory));
  }
  runtime.memory_limit_bytes = options.memory_limit_bytes;
  return runtime;
}

ModelRegistry RegistryOf(const ModelHost& host) {
  ModelRegistry registry;
  registry.Add(host.entry());
  for (const ModelEntry& adapter : host.adapters()) registry.Add(adapter);
  return registry;
}

Result<std::unique_ptr<ModelHost>> ModelHost::Load(const ModelHostOptions& options) {
  auto host = std::make_unique<CpuModelHost>();
  SKEIN_RETURN_IF_ERROR(host->Init(options));
  return std::unique_ptr<ModelHost>(std::move(host));
}

}  // namespace skein
