#include "runtime/cpu_runtime.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/threads/processor_speeds.h"
#include "base/threads/thread_team.h"
#include "model/config/encoders/sparse_config.h"
#include "model/forward/pass.h"
#include "model/weights/model_weight_files.h"
#include "runtime/cpu_executor.h"
#include "runtime/free_memory.h"
#include "runtime/kv_memory.h"
#include "runtime/memory_plan.h"

namespace skein {
namespace {

static_assert(kNumQuestionTypes == kTypeEmbeddings);

constexpr int32_t kMaxThreads = 1024;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Status Invalid(const std::string& field, const std::string& message) {
  return Status(StatusCode::kInvalidArgument, field + " " + message, field);
}

Status CheckOptions(const CpuRuntimeOptions& options, const ModelConfig& config) {
  const auto at_least = [](const char* field, int64_t value, int64_t least) {
    if (value >= least) return Status::Ok();
    return Invalid(field,
                   "is " + std::to_string(value) + "; must be at least " + std::to_string(least));
  };
  SKEIN_RETURN_IF_ERROR(at_least("threads", options.threads, 0));
  if (options.threads > kMaxThreads) {
    return Invalid("threads", "is " + std::to_string(options.threads) + "; at most " +
                                  std::to_string(kMaxThreads) + " are allowed");
  }
  SKEIN_RETURN_IF_ERROR(at_least("max_model_len", options.max_model_len, 0));
  SKEIN_RETURN_IF_ERROR(at_least("max_num_batched_tokens", options.max_num_batched_tokens, 1));
  SKEIN_RETURN_IF_ERROR(at_least("max_num_seqs", options.max_num_seqs, 1));
  SKEIN_RETURN_IF_ERROR(at_least("kv_cache_bytes", options.kv_cache_bytes, 0));
  SKEIN_RETURN_IF_ERROR(at_least("num_kv_blocks", options.num_kv_blocks, 0));
  SKEIN_RETURN_IF_ERROR(at_least("num_states", options.num_states, 0));
  SKEIN_RETURN_IF_ERROR(at_least("memory_bytes", options.memory_bytes, 0));
  SKEIN_RETURN_IF_ERROR(at_least("chunk_tokens", options.chunk_tokens, 0));
  SKEIN_RETURN_IF_ERROR(at_least("num_steps", options.num_steps, 1));
  if ((options.kv_cache_bytes > 0) + (options.num_kv_blocks > 0) + (options.memory_bytes > 0) > 1) {
    return Invalid("memory", "and the sizes of the KV memory exclude each other");
  }
  if (!options.kv_cache_file.empty() && options.kv_cache_bytes == 0) {
    return Invalid("kv_cache_file", "needs a size, that of the KV memory");
  }
  if (options.max_model_len > config.max_position) {
    return Invalid("max_model_len", "is " + std::to_string(options.max_model_len) +
                                        "; the model reaches to " +
                                        std::to_string(config.max_position));
  }
  if (options.kv_cache_dtype == KvCacheType::kInt8 && config.is_encoder()) {
    return Status(
        StatusCode::kUnsupported,
        "kv_cache_dtype is int8; encoders, which keep no keys and values, have auto alone",
        "kv_cache_dtype");
  }
  if (config.head_dim > kMaxHeadDim) {
    return Status(StatusCode::kUnsupported,
                  "head_dim is " + std::to_string(config.head_dim) +
                      "; the attention kernels take at most " + std::to_string(kMaxHeadDim),
                  "head_dim");
  }
  return Status::Ok();
}

// Refuses sizes that the system grants at first, but for which it would fail or kill the process
// when pages are written.
Status CheckMemory(const CpuRuntimeOptions& options, const char* field, int64_t value,
                   int64_t bytes) {
  const int64_t free_bytes = FreeMemoryBytes(options.memory_limit_bytes);
  if (free_bytes == 0 || bytes <= free_bytes) return Status::Ok();  // 0: free memory is not known
  return Invalid(field, "is " + std::to_string(value) + ", which needs " + std::to_string(bytes) +
                            " bytes; " + std::to_string(free_bytes) + " bytes are free");
}

// The number of rows of logits that fit into 48 MiB; at most the default number.
int32_t MaxLogitRows(int32_t vocab_size) {
  const int64_t rows = (int64_t{48} << 20) / (int64_t{vocab_size} * 4);
  return static_cast<int32_t>(std::clamp<int64_t>(rows, 1, ForwardLimits{}.max_logit_rows));
}

// The limits of the largest step, if prompts have up to `max_model_len` tokens.
ForwardLimits LimitsFor(const CpuRuntimeOptions& options, const ModelConfig& config, bool int8_rows,
                        int32_t lora_rank, int32_t max_model_len) {
  const StepBounds bounds =
      StepBoundsOf(options.retention, max_model_len, options.max_num_batched_tokens);
  const int32_t chunk = options.chunk_tokens > 0 ? options.chunk_tokens : kHybridChunkTokens;
  int32_t dense_width = 0;
  for (const DenseModule& module : options.dense) {
    dense_width = std::max(dense_width, module.out_features);
  }
  const int32_t long_tokens =
      options.long_prompt_tokens > 0 ? options.long_prompt_tokens + options.max_num_seqs : 0;
  return {
      .max_tokens = std::max(bounds.max_tokens, long_tokens),
      .max_logit_rows = std::min(options.max_num_batched_tokens, MaxLogitRows(config.vocab_size)),
      .chunk_tokens = options.execution == Execution::kHybrid ? chunk : 0,
      .max_own_blocks = bounds.max_own_blocks,
      .chunk_outputs = options.chunk_outputs,
      .dense_width = dense_width,
      .int8 = int8_rows,
      .int8_kv = options.kv_cache_dtype == KvCacheType::kInt8,
      .lora_rank = lora_rank};
}

// The largest step, and the bytes of the steps that keep their state at a time.
struct StepFit {
  ForwardLimits limits;
  int64_t bytes = 0;
};

// Shortens options->long_prompt_tokens until the steps take at most half of the free memory.
StepFit FitStep(const ModelWeights& weights, int32_t lora_rank, int32_t max_model_len,
                CpuRuntimeOptions* options) {
  const int64_t free_bytes = FreeMemoryBytes(options->memory_limit_bytes);  // 0: unknown
  const StepStates states = StatesOf(options->num_steps, options->max_num_seqs);
  options->long_prompt_tokens = std::min(options->long_prompt_tokens, max_model_len);
  for (;; options->long_prompt_tokens /= 2) {
    StepFit fit;
    fit.limits = LimitsFor(*options, weights.config, TakesInt8Rows(weights.matrix_dtype), lora_rank,
                           max_model_len);
    fit.bytes = TemporaryBytes(weights.config, weights.dtype, fit.limits, max_model_len, states);
    const bool fits = free_bytes == 0 || fit.bytes <= free_bytes / 2;
    if (fits || options->long_prompt_tokens == 0) return fit;
  }
}

// The number of KV blocks, and the longest sequence.
struct KvPlan {
  int32_t num_blocks = 0;
  int32_t max_model_len = 0;
  int64_t step_bytes = 0;  // set if all memory is limited
};

int32_t NumStates(const CpuRuntimeOptions& options, const ModelConfig& config) {
  if (!config.has_linear_layers()) return 0;
  return options.num_states > 0 ? options.num_states : StatesFor(config, options.max_num_seqs);
}

int64_t StateBytesOf(const CpuRuntimeOptions& options, const ModelConfig& config) {
  return NumStates(options, config) * config.StateBytes();
}

Result<KvPlan> PlanKv(const CpuRuntimeOptions& options, const ModelConfig& config,
                      int64_t block_bytes) {
  const int32_t wanted_len =
      options.max_model_len > 0 ? options.max_model_len : config.max_position;
  const int64_t blocks_per_seq = CeilDiv(wanted_len, kBlockTokens);
  int64_t num_blocks = options.num_kv_blocks;
  if (num_blocks > 0) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(num_blocks, block_bytes, &bytes)) {
      bytes = std::numeric_limits<int64_t>::max();
    }
    SKEIN_RETURN_IF_ERROR(CheckMemory(options, "num_kv_blocks", num_blocks, bytes));
  } else {
    const bool given = options.kv_cache_bytes > 0;
    if (given && options.kv_cache_file.empty()) {
      SKEIN_RETURN_IF_ERROR(
          CheckMemory(options, "kv_cache_bytes", options.kv_cache_bytes, options.kv_cache_bytes));
    }
    const int64_t left =
        FreeMemoryBytes(options.memory_limit_bytes) - StateBytesOf(options, config);
    const int64_t bytes = given ? options.kv_cache_bytes : std::max<int64_t>(left, 0) / 2;
    num_blocks = bytes / block_bytes;
    // Contiguous memory holds one sequence, whatever the other options are.
    if (!given || options.kv_storage == KvStorage::kContiguous) {
      num_blocks = std::min(num_blocks, blocks_per_seq * options.max_num_seqs);
    }
  }
  num_blocks = std::min<int64_t>(num_blocks, std::numeric_limits<int32_t>::max());
  const bool keeps_all = options.retention == Retention::kAll;
  const int64_t least = options.max_model_len > 0 && keeps_all ? blocks_per_seq : 1;
  if (num_blocks < least) {
    return Invalid("kv_cache_bytes", "allows " + std::to_string(num_blocks) + " blocks of " +
                                         std::to_string(block_bytes) + " bytes; one sequence of " +
                                         std::to_string(least == 1 ? kBlockTokens : wanted_len) +
                                         " tokens needs " + std::to_string(least));
  }
  const int64_t kept_len = keeps_all ? num_blocks * kBlockTokens : wanted_len;
  return KvPlan{static_cast<int32_t>(num_blocks),
                static_cast<int32_t>(std::min<int64_t>(wanted_len, kept_len))};
}

// Splits options.memory_bytes. `fixed_bytes` of them are needed for any length.
Result<KvPlan> PlanMemory(const CpuRuntimeOptions& options, const ModelWeights& weights,
                          int32_t lora_rank, int64_t fixed_bytes) {
  const ModelConfig& config = weights.config;
  const bool int8_rows = TakesInt8Rows(weights.matrix_dtype);
  SKEIN_RETURN_IF_ERROR(CheckMemory(options, "memory", options.memory_bytes, options.memory_bytes));
  const StepStates states = StatesOf(options.num_steps, options.max_num_seqs);
  const MemoryNeeds needs = {
      .memory_bytes = options.memory_bytes,
      .fixed_bytes = fixed_bytes,
      .block_bytes = KvBlockBytes(config, ChooseKvType(options.kv_cache_dtype, weights.dtype)),
      .retention = options.retention,
      .step_bytes = [&](int32_t n) {
        const ForwardLimits limits = LimitsFor(options, config, int8_rows, lora_rank, n);
        return TemporaryBytes(config, weights.dtype, limits, n, states);
      }};
  SKEIN_ASSIGN_OR_RETURN(const MemorySplit split,
                         SplitMemory(needs, options.max_model_len, config.max_position));
  return KvPlan{split.num_kv_blocks, split.max_model_len, split.temporary_bytes};
}

// The angles for global and for local layers; null if the model has no such layers.
struct Ropes {
  Ropes(const ModelConfig& config, int32_t num_positions, ThreadTeam& team) {
    const auto make = [&](const RopeConfig& rope) {
      return std::make_unique<RopeAngles>(MakeRopeTable(rope, config.head_dim, num_positions),
                                          num_positions, team);
    };
    if (config.has_rope()) global = make(config.rope);
    if (config.has_local_layers()) local = make(config.local.rope);
  }
  int64_t bytes() const {
    return static_cast<int64_t>((global == nullptr ? 0 : global->bytes()) +
                                (local == nullptr ? 0 : local->bytes()));
  }

  std::unique_ptr<RopeAngles> global, local;
};

// The bytes that a pass uses beyond its buffers: partly used large pages, stacks, and memory that
// libraries keep. They are measured by running a pass.
int64_t ProfileOverhead(const CpuRuntimeOptions& options, const ModelWeights& weights,
                        const Kernels& kernels, ThreadTeam& team) {
  constexpr int32_t kTokens = 512, kChunk = 256;
  const ModelConfig& config = weights.config;
  const int32_t tokens = std::min(kTokens, config.max_position);
  const int64_t before = ResidentBytes();
  const Ropes ropes(config, tokens, team);
  const ForwardLimits limits = {.max_tokens = tokens,
                                .max_logit_rows = 1,
                                .chunk_tokens = kChunk,
                                .max_own_blocks = BlocksFor(tokens),
                                .int8_kv = options.kv_cache_dtype == KvCacheType::kInt8};
  const KvLayout no_blocks = {ChooseKvType(options.kv_cache_dtype, weights.dtype),
                              config.num_kv_layers(), 0, config.num_kv_heads, config.head_dim};
  ForwardContext context = {&weights, &kernels, ropes.global.get(), no_blocks,
                            nullptr,  &team,    options.pooling};
  context.local_rope = ropes.local.get();
  ForwardPass pass(context, limits);
  const std::vector<int32_t> prompt(tokens, 0);
  pass.batch().AddRow(prompt, 0, {}, config.head == Head::kLanguageModel);
  if (config.head == Head::kClassifier) pass.batch().classified_rows.push_back(0);
  if (config.head == Head::kDecision) {
    pass.batch().marker_tokens.push_back(0);
    if (config.decision.answers_questions()) {
      pass.batch().decided_rows.push_back({.num_markers = 1});
    } else if (config.decision.num_actions > 0) {
      pass.batch().action_rows.push_back(0);
    }
  }
  if (config.head == Head::kNone) pass.batch().embedded_rows.push_back(0);
  if (config.head == Head::kTokenVectors) pass.batch().state_tokens.push_back(0);
  if (config.head == Head::kMaskedLanguageModel) {
    for (int32_t i = 0; i < tokens; ++i) {
      pass.batch().sparse_tokens.push_back({i, i + 1 == tokens});
    }
  }
  pass.Begin();
  while (pass.Run(nullptr) != ForwardStatus::kDone) {
  }
  return std::max<int64_t>(
      0, ResidentBytes() - before - TemporaryBytes(config, weights.dtype, limits, tokens));
}

Status BindThreads(const CpuRuntimeOptions& options, const std::vector<NumaNode>& nodes,
                   ThreadTeam* team) {
  if (options.pin_threads) return team->Pin(nodes);
  const bool replicate = options.numa == NumaRule::kReplicate && nodes.size() > 1;
  return replicate ? team->BindToNodes(nodes) : Status::Ok();
}

// Places the matrices on the nodes: in turn, or whole on each. One matrix at a time is there twice.
Status PlaceMatrices(const CpuRuntimeOptions& options, const std::vector<NumaNode>& nodes,
                     ModelWeights* weights) {
  const bool replicate = options.numa == NumaRule::kReplicate;
  const ModelWeights::MatrixBytes matrices = weights->matrix_bytes();
  const auto num_further = static_cast<int64_t>(replicate ? nodes.size() - 1 : 0);
  const int64_t bytes = num_further * matrices.all + matrices.largest;
  const int64_t free_bytes = FreeMemoryBytes(options.memory_limit_bytes);
  if (free_bytes > 0 && bytes > free_bytes) {
    return Invalid("numa", std::string("is ") + (replicate ? "replicate" : "interleave") +
                               ", which needs " + std::to_string(bytes) + " bytes more; " +
                               std::to_string(free_bytes) + " bytes are free");
  }
  return replicate ? weights->CopyToNodes(nodes) : weights->Interleave(nodes);
}

// Places the weights by options.numa. Returns the rule that holds, which is not kAuto.
Result<NumaRule> PlaceWeights(const CpuRuntimeOptions& options, const std::vector<NumaNode>& nodes,
                              ModelWeights* weights) {
  const bool automatic = options.numa == NumaRule::kAuto;
  if (nodes.size() == 1 || options.numa == NumaRule::kOff) return NumaRule::kOff;
  if (automatic && HasMemoryRule()) return NumaRule::kOff;  // somebody's own, as by numactl
  const Status placed = PlaceMatrices(options, nodes, weights);
  if (placed.ok()) return automatic ? NumaRule::kInterleave : options.numa;
  if (!automatic) return placed;
  spdlog::info("the weights lie where they were packed, on any of {} memory nodes: {}",
               nodes.size(), placed.message());
  return NumaRule::kOff;
}

class CpuRuntimeImpl final : public CpuRuntime {
 public:
  CpuRuntimeImpl(std::unique_ptr<ThreadTeam> team, std::unique_ptr<Kernels> kernels,
                 ModelWeights weights, std::vector<LoraWeights> adapters, const KvPlan& plan,
                 const ForwardLimits& limits, AlignedBuffer kv_buffer,
                 const CpuRuntimeOptions& options)
      : team_(std::move(team)),
        kernels_(std::move(kernels)),
        weights_(std::move(weights)),
        adapters_(std::move(adapters)),
        ropes_(weights_.config, plan.max_model_len, *team_),
        kv_({ChooseKvType(options.kv_cache_dtype, weights_.dtype), weights_.config.num_kv_layers(),
             plan.num_blocks, weights_.config.num_kv_heads, weights_.config.head_dim,
             options.kv_storage == KvStorage::kContiguous},
            std::move(kv_buffer)),
        state_layout_(weights_.config, NumStates(options, weights_.config)),
        states_(state_layout_.total_bytes(), HugePages::kInside),
        executor_(
            {&weights_, kernels_.get(), ropes_.global.get(), kv_.layout(), kv_.data(), team_.get(),
             options.pooling, options.share_attention, adapters_.empty() ? nullptr : &adapters_,
             ropes_.local.get(), state_layout_, reinterpret_cast<float*>(states_.data())},
            limits, &kv_, StatesOf(options.num_steps, options.max_num_seqs).num_decodes),
        max_model_len_(plan.max_model_len),
        long_prompt_tokens_(options.long_prompt_tokens),
        numa_(options.numa),
        planned_bytes_(plan.step_bytes) {
    executor_.set_granularity(options.granularity);
  }

  Executor& executor() override { return executor_; }
  KvPort& kv_port() override { return kv_; }
  void set_granularity(Granularity granularity) override { executor_.set_granularity(granularity); }
  const ModelConfig& config() const override { return weights_.config; }
  DType dtype() const override { return weights_.dtype; }
  DType kv_dtype() const override { return kv_.layout().dtype; }
  DType matrix_dtype() const override { return weights_.matrix_dtype; }
  std::string_view matrix_name() const override {
    if (weights_.rounded_to) return TraitsOf(*weights_.rounded_to).name;
    return NameOf(weights_.matrix_dtype);
  }
  Isa isa() const override { return kernels_->isa(); }
  int32_t num_threads() const override { return team_->num_threads(); }
  NumaRule numa() const override { return numa_; }
  int32_t num_kv_blocks() const override { return kv_.layout().num_blocks; }
  int32_t num_states() const override { return state_layout_.num_slots; }
  int32_t max_model_len() const override { return max_model_len_; }
  int32_t long_prompt_tokens() const override { return long_prompt_tokens_; }

  MemoryReport Memory() const override {
    size_t weight_bytes = weights_.bytes();
    for (const LoraWeights& adapter : adapters_) weight_bytes += adapter.bytes();
    return {
        .weight_bytes = static_cast<int64_t>(weight_bytes),
        .matrix_bytes = weights_.matrix_bytes().all,
        .kv_bytes = static_cast<int64_t>(kv_.bytes()),
        .kv_block_bytes =
            static_cast<int64_t>(kv_.layout().block_bytes()) * kv_.layout().num_layers,
        .state_bytes = static_cast<int64_t>(states_.size()),
        .rope_bytes = ropes_.bytes(),
        .activation_bytes = static_cast<int64_t>(executor_.activation_bytes()),
        .planned_bytes = planned_bytes_,
    };
  }

 private:
  std::unique_ptr<ThreadTeam> team_;
  std::unique_ptr<Kernels> kernels_;
  ModelWeights weights_;
  std::vector<LoraWeights> adapters_;
  Ropes ropes_;
  KvMemory kv_;
  const StateLayout state_layout_;
  AlignedBuffer states_;
  CpuExecutor executor_;
  int32_t max_model_len_;
  int32_t long_prompt_tokens_;
  NumaRule numa_;
  int64_t planned_bytes_;
};

}  // namespace

OutputSpec OutputOf(Head head) {
  switch (head) {
    case Head::kLanguageModel:
      return GenerateSpec{};
    case Head::kClassifier:
      return ClassifySpec{};
    case Head::kDecision:
      return DecideSpec{.markers = {0}};
    case Head::kNone:
    case Head::kMaskedLanguageModel:
    case Head::kTokenVectors:
      break;
  }
  return EmbedSpec{};
}

Result<std::unique_ptr<CpuRuntime>> CpuRuntime::Load(const CpuRuntimeOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfig(options.model_dir));
  SKEIN_RETURN_IF_ERROR(AdaptHead(options.pooling, &config));
  SKEIN_RETURN_IF_ERROR(CheckOptions(options, config));
  const DType dtype = ChooseComputeType(options.dtype, config.file_dtype);
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, OpenModelFiles(options.model_dir));
  const WeightTypes types = ChooseWeightTypes(options.quantization, dtype, config, files);
  Isa isa = Isa::kScalar;
  if (options.isa) {
    isa = *options.isa;
  } else {
    SKEIN_ASSIGN_OR_RETURN(isa, SelectIsa());
  }
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<Kernels> kernels, MakeKernels(isa));

  SKEIN_ASSIGN_OR_RETURN(std::vector<LoraWeights> adapters,
                         LoadAdapters(options.adapters, config, dtype));
  const int64_t block_bytes = KvBlockBytes(config, ChooseKvType(options.kv_cache_dtype, dtype));
  if (options.kv_cache_bytes > 0 || options.num_kv_blocks > 0) {
    SKEIN_RETURN_IF_ERROR(PlanKv(options, config, block_bytes).status());  // before the slow part
  }
  std::vector<NumaNode> nodes = NumaNodes(options.numa_folder);
  std::vector<float> speeds = ProcessorSpeeds(nodes);
  SortBySpeed(speeds, &nodes);
  auto team = std::make_unique<ThreadTeam>(ThreadsOrAll(options.threads));
  team->SetSpeeds(std::move(speeds));
  SKEIN_RETURN_IF_ERROR(BindThreads(options, nodes, team.get()));
  SKEIN_ASSIGN_OR_RETURN(ModelWeights weights,
                         LoadWeights(files, config, types, *team, options.progress));
  SKEIN_ASSIGN_OR_RETURN(const NumaRule numa, PlaceWeights(options, nodes, &weights));
  SKEIN_RETURN_IF_ERROR(LoadDenseModules(options.dense, &weights));
  if (options.weights_loaded) options.weights_loaded();
  const int64_t state_bytes = StateBytesOf(options, config);
  SKEIN_RETURN_IF_ERROR(CheckMemory(options, "max_num_seqs", options.max_num_seqs, state_bytes));
  // Memory is planned after the weights are loaded: the memory that is free then is available.
  KvPlan plan;
  if (options.memory_bytes > 0) {
    const int threads = team->num_threads();
    const int64_t fixed_bytes =
        state_bytes + SamplerBytes(config, threads, config.head == Head::kLanguageModel) +
        std::max(FixedBytes(threads), ProfileOverhead(options, weights, *kernels, *team));
    SKEIN_ASSIGN_OR_RETURN(plan, PlanMemory(options, weights, WidestRank(adapters), fixed_bytes));
  } else {
    SKEIN_ASSIGN_OR_RETURN(plan, PlanKv(options, config, block_bytes));
  }
  CpuRuntimeOptions fitted = options;
  fitted.numa = numa;
  const StepFit fit = FitStep(weights, WidestRank(adapters), plan.max_model_len, &fitted);
  const bool by_length = options.retention != Retention::kAll;
  SKEIN_RETURN_IF_ERROR(CheckMemory(options, by_length ? "max_model_len" : "max_num_batched_tokens",
                                    by_length ? plan.max_model_len : options.max_num_batched_tokens,
                                    fit.bytes));
  const size_t kv_bytes = static_cast<size_t>(plan.num_blocks) * block_bytes;
  AlignedBuffer kv_buffer;
  if (options.kv_cache_file.empty()) {
    kv_buffer = AlignedBuffer(kv_bytes, HugePages::kInside);  // unused blocks use no pages
  } else {
    Result<AlignedBuffer> in_file = AlignedBuffer::InFile(options.kv_cache_file, kv_bytes);
    if (!in_file.ok()) return Invalid("kv_cache_file", "is refused: " + in_file.status().message());
    kv_buffer = std::move(*in_file);
  }
  return std::unique_ptr<CpuRuntime>(std::make_unique<CpuRuntimeImpl>(
      std::move(team), std::move(kernels), std::move(weights), std::move(adapters), plan,
      fit.limits, std::move(kv_buffer), fitted));
}

}  // namespace skein
