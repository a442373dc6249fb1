#include "cuda/executor/cuda_runtime.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/threads/thread_team.h"
#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/device_kv.h"
#include "kernels/kernels.h"
#include "model/config/encoders/sparse_config.h"
#include "model/weights/model_weight_files.h"
#include "runtime/memory_plan.h"

namespace skein::cuda {
namespace {

// The KV memory's share, in tenths, of the memory that is free at the end. The driver needs the
// rest.
constexpr int64_t kKvTenths = 9;

Status Invalid(const std::string& field, const std::string& message) {
  return Status(StatusCode::kInvalidArgument, field + " " + message, field);
}

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
  int32_t num_states() const override { return executor_->num_states(); }
  int32_t max_model_len() const override { return max_model_len_; }
  int32_t long_prompt_tokens() const override { return long_prompt_tokens_; }
  MemoryReport Memory() const override {
    const auto num_ranks = static_cast<int64_t>(ranks_.size());
    MemoryReport report = {
        .kv_bytes = static_cast<int64_t>(kv_->bytes()),
        .kv_block_bytes = static_cast<int64_t>(kv_->port_bytes()),
        .rope_bytes = num_ranks * (BytesOf(rope_.get()) + BytesOf(local_rope_.get())),
        .activation_bytes = executor_->activation_bytes()};
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
  Status MakeStates(const StateLayout& layout);
  // The data that the passes of a rank share, for each rank.
  std::vector<CudaContext> MakeContexts(const CudaRuntimeOptions& options,
                                        const StateLayout& states, const KvLayout& kv);
  // The least memory that a device has free.
  int64_t FreeBytes() const;
  // The KV blocks that the options and what is free allow, of which a device has its part.
  // left_bytes: what is free beside weights and activations.
  Result<int32_t> PlanBlocks(const CudaRuntimeOptions& options, const ForwardLimits& limits,
                             int32_t max_model_len, int64_t left_bytes, int64_t block_bytes);
  // The largest step, and what its activations leave free. A whole prompt that is longer than other
  // steps is shortened until they take at most half of the free memory.
  Result<ForwardLimits> PlanStep(const CudaRuntimeOptions& options,
                                 const std::vector<CudaContext>& contexts, int32_t max_model_len,
                                 int64_t* left_bytes);

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

Status CudaRuntime::MakeStates(const StateLayout& layout) {
  for (RankMemory& rank : ranks_) {
    SKEIN_ASSIGN_OR_RETURN(
        rank.states, Buffer::Make(rank.device.get(), Buffer::Place::kDevice, layout.total_bytes()));
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

Result<ForwardLimits> CudaRuntime::PlanStep(const CudaRuntimeOptions& options,
                                            const std::vector<CudaContext>& contexts,
                                            int32_t max_model_len, int64_t* left_bytes) {
  const StepBounds bounds =
      StepBoundsOf(options.retention, max_model_len, options.max_num_batched_tokens);
  ForwardLimits limits = {
      .max_logit_rows = std::min(options.max_num_batched_tokens, ForwardLimits{}.max_logit_rows),
      .max_own_blocks = bounds.max_own_blocks};
  long_prompt_tokens_ = std::min(options.long_prompt_tokens, max_model_len);
  for (;; long_prompt_tokens_ /= 2) {
    const int32_t beside = long_prompt_tokens_ > 0 ? options.max_num_seqs : 0;
    limits.max_tokens = std::max(bounds.max_tokens, long_prompt_tokens_ + beside);
    const int64_t free_bytes = FreeBytes();
    // The activations' size is known when they are there.
    const Result<std::unique_ptr<CudaExecutor>> trial =
        CudaExecutor::Make(contexts, limits, StatesOf(options.num_steps, options.max_num_seqs));
    if (trial.ok()) *left_bytes = FreeBytes();
    if (trial.ok() && (*left_bytes >= free_bytes / 2 || long_prompt_tokens_ == 0)) return limits;
    if (long_prompt_tokens_ == 0) return trial.status();
  }
}

Result<int32_t> CudaRuntime::PlanBlocks(const CudaRuntimeOptions& options,
                                        const ForwardLimits& limits, int32_t max_model_len,
                                        int64_t left_bytes, int64_t block_bytes) {
  // All devices count with what the fullest has left.
  const int64_t left = left_bytes * static_cast<int64_t>(ranks_.size());
  int64_t blocks = options.num_kv_blocks;
  if (blocks == 0) {
    const int64_t bytes =
        options.kv_cache_bytes > 0 ? options.kv_cache_bytes : left * kKvTenths / 10;
    blocks = std::min<int64_t>(bytes / block_bytes, std::numeric_limits<int32_t>::max());
    // No block of a bidirectional model is kept behind its step, whose rows may be short.
    if (weights_.config.bidirectional && options.kv_cache_bytes == 0) {
      const int64_t most = int64_t{BlocksFor(max_model_len)} * options.max_num_seqs;
      blocks = std::min(blocks, options.num_steps * (most + limits.max_tokens));
    }
  }
  if (blocks < 1 || blocks > left / block_bytes) {
    return Status(StatusCode::kResourceExhausted,
                  "the KV memory would have " + std::to_string(blocks) + " blocks of " +
                      std::to_string(block_bytes) + " bytes; " + std::to_string(left) +
                      " bytes are free on " +
                      (ranks_.size() > 1 ? "all devices together" : "the device") +
                      " beside weights and activations",
                  options.num_kv_blocks > 0 ? "num_kv_blocks" : "kv_cache_bytes");
  }
  return static_cast<int32_t>(blocks);
}

Status CudaRuntime::Load(const CudaRuntimeOptions& options, const ModelConfig& config) {
  SKEIN_RETURN_IF_ERROR(Connect(ranks_));
  SKEIN_RETURN_IF_ERROR(LoadModel(options, config));
  const int32_t wanted_len =
      options.max_model_len > 0 ? options.max_model_len : config.max_position;
  const StepStates states = StatesOf(options.num_steps, options.max_num_seqs);
  SKEIN_RETURN_IF_ERROR(MakeRopes(wanted_len));
  StateLayout states_of;
  if (config.has_linear_layers()) {
    states_of = StateLayout(config, StatesFor(config, options.max_num_seqs));
    SKEIN_RETURN_IF_ERROR(MakeStates(states_of));
  }
  KvLayout layout = {weights_.dtype, config.num_kv_layers(), 0, config.num_kv_heads,
                     config.head_dim};
  int64_t left_bytes = 0;
  SKEIN_ASSIGN_OR_RETURN(
      const ForwardLimits limits,
      PlanStep(options, MakeContexts(options, states_of, layout), wanted_len, &left_bytes));
  layout.num_blocks = 1;
  SKEIN_ASSIGN_OR_RETURN(layout.num_blocks, PlanBlocks(options, limits, wanted_len, left_bytes,
                                                       static_cast<int64_t>(layout.total_bytes())));
  std::vector<Device*> devices;
  for (const RankMemory& rank : ranks_) devices.push_back(rank.device.get());
  SKEIN_ASSIGN_OR_RETURN(kv_, DeviceKv::Make(layout, std::move(devices)));
  SKEIN_ASSIGN_OR_RETURN(
      executor_,
      CudaExecutor::Make(MakeContexts(options, states_of, kv_->rank_layout()), limits, states));
  executor_->set_granularity(options.granularity);
  const int64_t kept =
      options.retention == Retention::kAll ? int64_t{layout.num_blocks} * kBlockTokens : wanted_len;
  if (options.max_model_len > kept) {
    return Invalid("max_model_len", "is " + std::to_string(wanted_len) + "; the KV memory holds " +
                                        std::to_string(kept) + " tokens");
  }
  max_model_len_ = static_cast<int32_t>(std::min<int64_t>(wanted_len, kept));
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
