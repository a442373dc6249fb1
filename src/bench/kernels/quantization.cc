#include "bench/kernels/quantization.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "base/threads/thread_team.h"
#include "model/forward/pass.h"

namespace skein {
namespace {

constexpr int32_t kLogitRows = 64;

// A model that computes one sequence at a time.
class OneSequence {
 public:
  OneSequence(ModelWeights weights, KvCacheType kv_type, const Kernels& kernels, ThreadTeam& team,
              int32_t max_tokens)
      : weights_(std::move(weights)),
        rope_(MakeRopeTable(weights_.config.rope, weights_.config.head_dim), max_tokens, team),
        blocks_((max_tokens + kKvBlockTokens - 1) / kKvBlockTokens) {
    const ModelConfig& c = weights_.config;
    const KvLayout layout = {ChooseKvType(kv_type, weights_.dtype), c.num_kv_layers(),
                             static_cast<int32_t>(blocks_.size()), c.num_kv_heads, c.head_dim};
    kv_ = AlignedBuffer(layout.total_bytes());
    std::iota(blocks_.begin(), blocks_.end(), 0);
    const ForwardContext context = {&weights_, &kernels, &rope_, layout, kv_.data(), &team};
    pass_.emplace(context, ForwardLimits{.max_tokens = max_tokens, .max_logit_rows = kLogitRows});
  }

  const ModelWeights& weights() const { return weights_; }

  void Begin(std::span<const int32_t> tokens) {
    ForwardBatch& batch = pass_->batch();
    batch.Clear();
    batch.AddRow(tokens, 0, blocks_, false);
    for (int32_t i = 0; i < batch.num_tokens(); ++i) batch.logit_tokens.push_back(i);
    pass_->Begin();
  }
  // Computes the next rows of logits. Returns false if there are no more.
  bool Next() { return pass_->Run(nullptr) == ForwardStatus::kLogits; }
  const ForwardPass& pass() const { return *pass_; }

 private:
  ModelWeights weights_;
  RopeAngles rope_;
  std::vector<int32_t> blocks_;
  AlignedBuffer kv_;
  std::optional<ForwardPass> pass_;
};

double LogSumExp(std::span<const float> logits) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  return max + std::log(sum);
}

// Adds one position to the report, whose means are sums until the end. `next` is the text's token
// after the position; unset at the last position.
void AddPosition(std::span<const float> plain, std::span<const float> quantized,
                 std::optional<int32_t> next, QuantizationReport* report) {
  const double plain_sum = LogSumExp(plain);
  const double quantized_sum = LogSumExp(quantized);
  double kl = 0, differences = 0, expected = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double log_p = plain[i] - plain_sum;
    const double difference = (quantized[i] - quantized_sum) - log_p;
    const double p = std::exp(log_p);
    kl -= p * difference;
    expected += p * std::abs(difference);
    differences += std::abs(difference);
    report->max_difference = std::max(report->max_difference, std::abs(difference));
  }
  report->mean_difference += differences / static_cast<double>(plain.size());
  report->expected_difference += expected;
  report->mean_kl += kl;
  report->max_kl = std::max(report->max_kl, kl);
  const bool same = std::ranges::max_element(plain) - plain.begin() ==
                    std::ranges::max_element(quantized) - quantized.begin();
  report->top1_agreement += same ? 1 : 0;
  if (next) {
    report->perplexity += plain_sum - plain[*next];
    report->quantized_perplexity += quantized_sum - quantized[*next];
  }
  ++report->num_positions;
}

void Compare(std::span<const int32_t> tokens, OneSequence* plain, OneSequence* quantized,
             QuantizationReport* report) {
  const size_t vocab = plain->weights().config.vocab_size;
  plain->Begin(tokens);
  quantized->Begin(tokens);
  size_t end = 0;  // end of the tokens that are done
  while (plain->Next()) {
    SKEIN_CHECK(quantized->Next());
    for (int32_t i = 0; i < plain->pass().num_logit_rows(); ++i) {
      ++end;
      AddPosition({plain->pass().logits(i), vocab}, {quantized->pass().logits(i), vocab},
                  end < tokens.size() ? std::optional(tokens[end]) : std::nullopt, report);
    }
  }
  SKEIN_CHECK(!quantized->Next());
}

}  // namespace

Result<QuantizationReport> CompareQuantization(const QuantizationOptions& options,
                                               std::span<const std::vector<int32_t>> sequences) {
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(options.model_dir));
  const DType compute = ChooseComputeType(options.dtype, config.file_dtype);
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(options.model_dir));
  const std::string& other_dir =
      options.quantized_dir.empty() ? options.model_dir : options.quantized_dir;
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig other_config, LoadModelConfig(other_dir));
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles other_files, ModelFiles::Open(other_dir));
  const WeightTypes types =
      ChooseWeightTypes(options.quantization, compute, other_config, other_files);
  if (other_config.vocab_size != config.vocab_size) {
    return Status(StatusCode::kInvalidArgument,
                  "the models have " + std::to_string(config.vocab_size) + " and " +
                      std::to_string(other_config.vocab_size) + " tokens; they must have the same",
                  "quantized");
  }
  if (config.is_encoder() || config.head != Head::kLanguageModel) {
    return Status(StatusCode::kUnsupported, "only models that predict tokens can be compared; " +
                                                options.model_dir + " has no output matrix");
  }
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Kernels> kernels, MakeKernels(isa));
  ThreadTeam team(ThreadsOrAll(options.threads));
  size_t longest = 1;
  for (const std::vector<int32_t>& tokens : sequences) longest = std::max(longest, tokens.size());
  const auto load = [&](const ModelFiles& from, const ModelConfig& model, WeightTypes wanted,
                        KvCacheType kv_type) -> Result<std::unique_ptr<OneSequence>> {
    SKEIN_ASSIGN_OR_RETURN(ModelWeights weights, LoadWeights(from, model, wanted, team, {}));
    return std::make_unique<OneSequence>(std::move(weights), kv_type, *kernels, team,
                                         static_cast<int32_t>(longest));
  };
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<OneSequence> plain,
                         load(files, config, compute, KvCacheType::kAuto));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<OneSequence> quantized,
                         load(other_files, other_config, types, options.kv_cache_dtype));
  QuantizationReport report;
  for (const std::vector<int32_t>& tokens : sequences) {
    Compare(tokens, plain.get(), quantized.get(), &report);
  }
  const auto positions = static_cast<double>(std::max<int64_t>(report.num_positions, 1));
  const auto predicted =
      std::max(positions - static_cast<double>(sequences.size()), 1.0);  // no sequence's last one
  for (double* sum : {&report.perplexity, &report.quantized_perplexity}) {
    *sum = std::exp(*sum / predicted);
  }
  for (double* sum : {&report.mean_difference, &report.expected_difference, &report.mean_kl,
                      &report.top1_agreement}) {
    *sum /= positions;
  }
  report.weight_bytes = static_cast<int64_t>(plain->weights().bytes());
  report.quantized_weight_bytes = static_cast<int64_t>(quantized->weights().bytes());
  return report;
}

}  // namespace skein
