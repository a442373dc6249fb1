#include "cuda/executor/cuda_runtime.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/threads/thread_team.h"
#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/device_plan.h"
#include "cuda/executor/kv/device_kv.h"
#include "kernels/kernels.h"
#include "model/config/encoders/sparse_config.h"
#include "model/weights/model_weight_files.h"
#include "runtime/free_memory.h"
#include "runtime/memory_plan.h"

namespace skein::cuda {
namespace {

Status Invalid(const std::string& field, const std::string& message) {
  return Status(StatusCode::kInvalidArgument, field + " " + message, field);
}

// Bounds the tables of the host tier.
constexpr int64_t kMostHostBlocks = 1 << 30;

int64_t BytesOf(const RopeAngles* rope) {
  return rope == nullptr ? 0 : static_cast<int64_t>(rope->bytes());
}

// The memory of one device.
struct RankMemory {
  Rank rank;
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceWeights> weights;
  DeviceRope rope, local_rope;
  Buffer states;  // StateLayout
};

// The kernels of each device write to the memory of all others.
Status Connect(const std::vector<RankMemory>& ranks) {
  for (const RankMemory& from : ranks) {
    for (const RankMemory& to : ranks) {
      if (&from != &to) SKEIN_RETURN_IF_ERROR(from.device->Connect(*to.device));
    }
  }
  return Status::Ok();
}

class CudaRuntime final : public Runtime {
 public:
  CudaRuntime(std::vector<std::unique_ptr<Device>> devices, int threads,
              std::unique_ptr<Kernels> kernels)
      : team_(threads), kernels_(std::move(kernels)) {
    const auto count = static_cast<int32_t>(devices.size());
    for (int32_t index = 0; index < count; ++index) {
      ranks_.push_back({.rank = {index, count}, .device = std::move(devices[index])});
    }
  }

  Status Load(const CudaRuntimeOptions& options, const ModelConfig& config);

  Executor& executor() override { return *executor_; }
  KvPort& kv_port() override { return *kv_; }
  void set_granularity(Granularity granularity) override {
    executor_->set_granularity(granularity);
  }
  const ModelConfig& config() const override { return weights_.config; }
  int32_t num_kv_blocks() const override { return kv_->layout().num_blocks; }
  int32_t num_host_kv_blocks() const override { return kv_->num_host_blocks(); }
  int32_t num_states() const override { return executor_->num_states(); }
  int32_t max_model_len() const override { return max_model_len_; }
  int32_t long_prompt_tokens() const override { return long_prompt_tokens_; }
  MemoryReport Memory() const override {
    const auto num_ranks = static_cast<int64_t>(ranks_.size());
    MemoryReport report = {
        .kv_bytes = static_cast<int64_t>(kv_->bytes()),
        .kv_block_bytes = static_cast<int64_t>(kv_->port_bytes()),
        .host_kv_bytes = static_cast<int64_t>(kv_->host_bytes()),
        .rope_bytes = num_ranks * (BytesOf(rope_.get()) + BytesOf(local_rope_.get())),
        .activation_bytes = executor_->activation_bytes(),
        .planned_bytes = planned_bytes_};
    for (const RankMemory& rank : ranks_) {
      report.weight_bytes += rank.weights->bytes;
      report.state_bytes += static_cast<int64_t>(rank.states.bytes());
    }
    return report;
  }

 private:
  Status LoadModel(const CudaRuntimeOptions& options, const ModelConfig& config);
  // The ropes of all layers, and of those with a window.
  Status MakeRopes(int32_t num_positions);
  // The states of linear layers.
  Status MakeStates(size_t bytes);
  // The data that the passes of a rank share, for each rank.
  std::vector<CudaContext> MakeContexts(const CudaRuntimeOptions& options,
                                        const StateLayout& states, const KvLayout& kv);
  // The least memory that a device has free.
  int64_t FreeBytes() const;
  // The KV memory of a rank.
  KvLayout RankLayout(int32_t num_blocks) const;
  // The longest prompt that the options ask for.
  int32_t WantedLen(const CudaRuntimeOptions& options) const {
    return options.max_model_len > 0 ? options.max_model_len : config().max_position;
  }
  // The largest step, if prompts have up to so many tokens.
  ForwardLimits LimitsFor(const CudaRuntimeOptions& options, int32_t max_model_len) const;
  // The bytes of all steps that keep their state, then.
  int64_t StepBytes(const CudaRuntimeOptions& options, int32_t max_model_len) const;
  // Shortens whole prompts that are longer than other steps until steps take at most half of the
  // memory.
  void FitLongPrompts(const CudaRuntimeOptions& options, int64_t memory_bytes);
  // The KV blocks that the options ask for; 0: they do not say.
  Result<int32_t> WantedBlocks(const CudaRuntimeOptions& options, int64_t block_bytes) const;
  // The slots of the host tier.
  Result<int32_t> HostBlocks(const CudaRuntimeOptions& options) const;
  // Splits the memory of each device. Blocks are those of its share of the heads.
  Result<MemorySplit> PlanMemory(const CudaRuntimeOptions& options, int64_t state_bytes);

  std::vector<RankMemory> ranks_;
  ThreadTeam team_;
  std::unique_ptr<Kernels> kernels_;
  ModelWeights weights_;  // without the layers, which are on the devices alone
  std::vector<LoraWeights> adapters_;
  std::unique_ptr<RopeAngles> rope_, local_rope_;
  std::unique_ptr<DeviceKv> kv_;
  std::unique_ptr<CudaExecutor> executor_;
  int32_t max_model_len_ = 0;
  int32_t long_prompt_tokens_ = 0;
  int64_t planned_bytes_ = 0;  // MemoryReport::planned_bytes
};

Status CudaRuntime::LoadModel(const CudaRuntimeOptions& options, const ModelConfig& config) {
  const DType dtype = ChooseComputeType(options.dtype, config.file_dtype);
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, OpenModelFiles(options.model_dir));
  const WeightTypes types = ChooseWeightTypes(options.quantization, dtype, config, files);
  SKEIN_ASSIGN_OR_RETURN(weights_, LoadWeights(files, config, types, team_, options.progress));
  SKEIN_RETURN_IF_ERROR(LoadDenseModules(options.dense, &weights_));
  SKEIN_RETURN_IF_ERROR(CheckDeviceComputes(weights_));
  SKEIN_ASSIGN_OR_RETURN(adapters_, LoadAdapters(options.adapters, config, dtype));
  for (RankMemory& rank : ranks_) {
    SKEIN_ASSIGN_OR_RETURN(rank.weights,
                           DeviceWeights::Upload(weights_, rank.rank, rank.device.get()));
    SKEIN_RETURN_IF_ERROR(rank.weights->AddAdapters(adapters_));
  }
  weights_.layers.clear();
  weights_.layers.shrink_to_fit();
  return Status::Ok();
}

Status CudaRuntime::MakeRopes(int32_t num_positions) {
  const ModelConfig& c = weights_.config;
  const auto angles = [&](const RopeConfig& rope) {
    return std::make_unique<RopeAngles>(MakeRopeTable(rope, c.head_dim, num_positions),
                                        num_positions, team_);
  };
  if (c.has_rope()) {
    rope_ = angles(c.rope);
  }
  if (c.has_local_layers()) local_rope_ = angles(c.local.rope);
  for (RankMemory& rank : ranks_) {
    Device* const device = rank.device.get();
    if (rope_ != nullptr) {
      SKEIN_ASSIGN_OR_RETURN(rank.rope, DeviceRope::Upload(*rope_, device));
    }
    if (local_rope_ != nullptr) {
      SKEIN_ASSIGN_OR_RETURN(rank.local_rope, DeviceRope::Upload(*local_rope_, device));
    }
  }
  return Status::Ok();
}

Status CudaRuntime::MakeStates(size_t bytes) {
  for (RankMemory& rank : ranks_) {
    SKEIN_ASSIGN_OR_RETURN(rank.states,
                           Buffer::Make(rank.device.get(), Buffer::Place::kDevice, bytes));
  }
  return Status::Ok();
}

std::vector<CudaContext> CudaRuntime::MakeContexts(const CudaRuntimeOptions& options,
                                                   const StateLayout& states, const KvLayout& kv) {
  std::vector<CudaContext> contexts;
  for (const RankMemory& rank : ranks_) {
    CudaContext& context = contexts.emplace_back();
    context.device = rank.device.get();
    context.rank = rank.rank;
    context.weights = rank.weights.get();
    context.model = {&weights_, kernels_.get(), rope_.get(),     kv,
                     nullptr,   &team_,         options.pooling, options.share_attention};
    context.model.state_layout = states;
    if (!adapters_.empty()) context.model.adapters = &adapters_;
    if (rope_ != nullptr) context.rope = &rank.rope;
    if (local_rope_ != nullptr) context.local_rope = &rank.local_rope;
    context.states = rank.states.as<float>();
    if (kv_ != nullptr) context.kv = kv_->data(rank.rank.index);
  }
  return contexts;
}

int64_t CudaRuntime::FreeBytes() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const RankMemory& rank : ranks_) {
    least = std::min(least, rank.device->Memory().free_bytes);
  }
  return least;
}

ForwardLimits CudaRuntime::LimitsFor(const CudaRuntimeOptions& options,
                                     int32_t max_model_len) const {
  const StepBounds bounds =
      StepBoundsOf(options.retention, max_model_len, options.max_num_batched_tokens);
  const int32_t long_tokens =
      long_prompt_tokens_ > 0 ? long_prompt_tokens_ + options.max_num_seqs : 0;
  const int32_t chunk = options.chunk_tokens > 0 ? options.chunk_tokens : kDeviceChunkTokens;
  return {
      .max_tokens = std::max(bounds.max_tokens, long_tokens),
      .max_logit_rows = std::min(options.max_num_batched_tokens, ForwardLimits{}.max_logit_rows),
      .chunk_tokens = options.execution == Execution::kHybrid ? chunk : 0,
      .max_own_blocks = bounds.max_own_blocks};
}

int64_t CudaRuntime::StepBytes(const CudaRuntimeOptions& options, int32_t max_model_len) const {
  CudaContext context = {.device = ranks_[0].device.get(), .rank = ranks_[0].rank};
  context.model = {
      .weights = &weights_, .pooling = options.pooling, .share_attention = options.share_attention};
  context.model.kv_layout = RankLayout(1);
  if (!adapters_.empty()) context.model.adapters = &adapters_;
  return DeviceStepBytes(ActivationShape(context), LimitsFor(options, max_model_len), max_model_len,
                         StatesOf(options.num_steps, options.max_num_seqs));
}

KvLayout CudaRuntime::RankLayout(int32_t num_blocks) const {
  const ModelConfig share = ShareOf(ranks_[0].rank, config());
  return {weights_.dtype, share.num_kv_layers(), num_blocks, share.num_kv_heads, share.head_dim};
}

void CudaRuntime::FitLongPrompts(const CudaRuntimeOptions& options, int64_t memory_bytes) {
  const int32_t wanted_len = WantedLen(options);
  long_prompt_tokens_ = std::min(options.long_prompt_tokens, wanted_len);
  while (long_prompt_tokens_ > 0 && StepBytes(options, wanted_len) > memory_bytes / 2) {
    long_prompt_tokens_ /= 2;
  }
}

Result<int32_t> CudaRuntime::WantedBlocks(const CudaRuntimeOptions& options,
                                          int64_t block_bytes) const {
  if (options.num_kv_blocks > 0) return options.num_kv_blocks;
  if (options.kv_cache_bytes == 0) return 0;
  const int64_t all_bytes = block_bytes * std::ssize(ranks_);
  const int64_t blocks =
      std::min<int64_t>(options.kv_cache_bytes / all_bytes, std::numeric_limits<int32_t>::max());
  if (blocks > 0) return static_cast<int32_t>(blocks);
  return Invalid("kv_cache_bytes", "is " + std::to_string(options.kv_cache_bytes) +
                                       "; a block has " + std::to_string(all_bytes) + " bytes");
}

Result<int32_t> CudaRuntime::HostBlocks(const CudaRuntimeOptions& options) const {
  const int64_t bytes = options.kv_offload_bytes;
  if (bytes == 0) return 0;
  const auto refuse = [](StatusCode code, const std::string& what) {
    return Status(code, "--kv-offload-memory " + what, "kv_offload_bytes");
  };
  if (config().has_linear_layers()) {
    return refuse(StatusCode::kUnsupported, "is for models without linear layers; this one (" +
                                                config().ArchitectureName() +
                                                ") also needs the states behind its blocks");
  }
  const int64_t block_bytes =
      static_cast<int64_t>(RankLayout(1).total_bytes()) * std::ssize(ranks_);
  const int64_t free_bytes = FreeMemoryBytes(options.memory_limit_bytes);
  if (bytes < block_bytes) {
    return refuse(StatusCode::kInvalidArgument, "is " + std::to_string(bytes) + "; a block has " +
                                                    std::to_string(block_bytes) + " bytes");
  }
  if (free_bytes > 0 && bytes > free_bytes) {
    return refuse(StatusCode::kInvalidArgument, "is " + std::to_string(bytes) + "; the host has " +
                                                    std::to_string(free_bytes) + " bytes free");
  }
  return static_cast<int32_t>(std::min<int64_t>(bytes / block_bytes, kMostHostBlocks));
}

Result<MemorySplit> CudaRuntime::PlanMemory(const CudaRuntimeOptions& options,
                                            int64_t state_bytes) {
  const int64_t count = std::ssize(ranks_), free_bytes = FreeBytes();
  const int64_t given_bytes = options.memory_bytes / count;
  if (given_bytes > free_bytes) {
    return Invalid("memory", "is " + std::to_string(options.memory_bytes) + "; " +
                                 std::to_string(free_bytes * count) +
                                 " bytes are free beside the weights");
  }
  MemoryNeeds needs = {.memory_bytes = given_bytes > 0 ? given_bytes : PlannedBytes(free_bytes),
                       .fixed_bytes = state_bytes,
                       .block_bytes = static_cast<int64_t>(RankLayout(1).total_bytes()),
                       .retention = options.retention,
                       .step_bytes = [&](int32_t n) { return StepBytes(options, n); }};
  SKEIN_ASSIGN_OR_RETURN(needs.num_kv_blocks, WantedBlocks(options, needs.block_bytes));
  FitLongPrompts(options, needs.memory_bytes);
  if (needs.num_kv_blocks > 0) {
    // The driver's share may be taken by blocks that are asked for.
    needs.memory_bytes = free_bytes;
    const int64_t left = free_bytes - state_bytes - StepBytes(options, 1);
    if (left < needs.num_kv_blocks * needs.block_bytes) {
      return Status(StatusCode::kResourceExhausted,
                    "the KV memory would have " + std::to_string(needs.num_kv_blocks) +
                        " blocks of " + std::to_string(needs.block_bytes * count) + " bytes; " +
                        std::to_string(std::max<int64_t>(left, 0) * count) + " bytes are free on " +
                        (count > 1 ? "all devices together" : "the device") +
                        " beside weights and activations",
                    options.num_kv_blocks > 0 ? "num_kv_blocks" : "kv_cache_bytes");
    }
  }
  Result<MemorySplit> split = SplitMemory(needs, options.max_model_len, config().max_position);
  if (!split.ok() && given_bytes == 0) {
    const Status& status = split.status();
    return Status(StatusCode::kResourceExhausted, status.message(), status.param());
  }
  if (!split.ok()) return split.status();
  // No block of a bidirectional model is kept behind its step, whose rows may be short.
  if (config().bidirectional && needs.num_kv_blocks == 0) {
    const int64_t most = int64_t{BlocksFor(split->max_model_len)} * options.max_num_seqs +
                         LimitsFor(options, split->max_model_len).max_tokens;
    split->num_kv_blocks =
        static_cast<int32_t>(std::min<int64_t>(split->num_kv_blocks, options.num_steps * most));
  }
  return split;
}

Status CudaRuntime::Load(const CudaRuntimeOptions& options, const ModelConfig& config) {
  SKEIN_RETURN_IF_ERROR(Connect(ranks_));
  SKEIN_RETURN_IF_ERROR(LoadModel(options, config));
  const StepStates states = StatesOf(options.num_steps, options.max_num_seqs);
  StateLayout states_of;
  if (config.has_linear_layers()) {
    states_of = StateLayout(config, StatesFor(config, options.max_num_seqs));
  }
  const size_t state_bytes = CudaExecutor::StateBytes(states_of, states);
  SKEIN_ASSIGN_OR_RETURN(const MemorySplit split,
                         PlanMemory(options, static_cast<int64_t>(state_bytes)));
  if (options.memory_bytes > 0) planned_bytes_ = split.temporary_bytes * std::ssize(ranks_);
  const int64_t kept = options.retention == Retention::kAll
                           ? int64_t{split.num_kv_blocks} * kBlockTokens
                           : split.max_model_len;
  if (options.max_model_len > kept) {
    return Invalid("max_model_len", "is " + std::to_string(options.max_model_len) +
                                        "; the KV memory holds " + std::to_string(kept) +
                                        " tokens");
  }
  max_model_len_ = static_cast<int32_t>(std::min<int64_t>(split.max_model_len, kept));
  SKEIN_RETURN_IF_ERROR(MakeRopes(max_model_len_));
  SKEIN_RETURN_IF_ERROR(MakeStates(state_bytes));
  KvLayout layout = RankLayout(split.num_kv_blocks);
  layout.num_kv_heads = config.num_kv_heads;
  std::vector<Device*> devices;
  for (const RankMemory& rank : ranks_) devices.push_back(rank.device.get());
  SKEIN_ASSIGN_OR_RETURN(const int32_t num_host_blocks, HostBlocks(options));
  SKEIN_ASSIGN_OR_RETURN(kv_, DeviceKv::Make(layout, std::move(devices), num_host_blocks));
  SKEIN_ASSIGN_OR_RETURN(executor_,
                         CudaExecutor::Make(MakeContexts(options, states_of, kv_->rank_layout()),
                                            LimitsFor(options, max_model_len_), states));
  executor_->set_granularity(options.granularity);
  executor_->set_kv(kv_.get());
  // Until then a device may still zero memory to which another one writes.
  for (const RankMemory& rank : ranks_) SKEIN_RETURN_IF_ERROR(rank.device->WaitForAll());
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<Runtime>> LoadCudaRuntime(const CudaRuntimeOptions& options,
                                                 std::unique_ptr<Device> device) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::move(device));
  return LoadCudaRuntime(options, std::move(devices));
}

Result<std::unique_ptr<Runtime>> LoadCudaRuntime(const CudaRuntimeOptions& options,
                                                 std::vector<std::unique_ptr<Device>> devices) {
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfig(options.model_dir));
  SKEIN_RETURN_IF_ERROR(AdaptHead(options.pooling, &config));
  if (options.max_model_len > config.max_position) {
    return Invalid("max_model_len", "is " + std::to_string(options.max_model_len) +
                                        "; the model reaches to " +
                                        std::to_string(config.max_position));
  }
  if ((options.kv_cache_bytes > 0) + (options.num_kv_blocks > 0) + (options.memory_bytes > 0) > 1) {
    return Invalid("memory", "and the sizes of the KV memory exclude each other");
  }
  SKEIN_RETURN_IF_ERROR(CheckRanks(config, static_cast<int32_t>(devices.size())));
  if (devices.size() > 1 && !options.adapters.empty()) {
    return Status(StatusCode::kUnsupported,
                  "several devices do not compute adapters (--lora, --decision-lora) together yet; "
                  "--tp 1 does",
                  "tp");
  }
  // The bits of draws do not depend on the instruction set.
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<Kernels> kernels, MakeKernels(isa));
  auto runtime = std::make_unique<CudaRuntime>(std::move(devices), ThreadsOrAll(options.threads),
                                               std::move(kernels));
  SKEIN_RETURN_IF_ERROR(runtime->Load(options, config));
  return std::unique_ptr<Runtime>(std::move(runtime));
}

}  // namespace skein::cuda
