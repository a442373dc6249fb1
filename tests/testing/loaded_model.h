#pragma once

// A model as the tests of numbers use it: loaded from a directory, run by hand without an engine.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "model/forward/pass.h"
#include "model/weights/model_weight_files.h"
#include "testing/weight_names.h"

namespace skein::testing {

using Logits = std::vector<float>;  // [vocab]

// The shape of Qwen3-0.6B, for plans of memory.
inline ModelConfig Qwen3Shape() {
  ModelConfig config;
  config.vocab_size = 151936;
  config.hidden_size = 1024;
  config.intermediate_size = 3072;
  config.num_layers = 28;
  config.num_heads = 16;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.max_position = 40960;
  return config;
}

// Passes every call on, and raises a flag after the call that `calls_left` counts down to.
class StoppingKernels final : public Kernels {
 public:
  explicit StoppingKernels(std::unique_ptr<Kernels> kernels) : kernels_(std::move(kernels)) {}

  // The next call is number 0. Only exact while a single thread calls.
  void StopAfter(int64_t calls) { calls_left_ = calls; }
  std::atomic<bool>& stop() { return stop_; }
  int64_t num_calls() const { return num_calls_; }
  int64_t num_attention_calls() const { return num_attention_calls_; }
  // Sees every product from now on, one at a time; empty: nobody does. While no thread calls.
  void set_gemm_observer(std::function<void(const GemmCall&)> observer) {
    gemm_observer_ = std::move(observer);
  }

  Isa isa() const override { return kernels_->isa(); }
  void Gemm(const GemmCall& call) const override {
    kernels_->Gemm(call);
    if (gemm_observer_) {
      const std::lock_guard lock(mutex_);
      gemm_observer_(call);
    }
    Count();
  }
  void Attention(const AttentionCall& call) const override {
    kernels_->Attention(call);
    num_attention_calls_.fetch_add(1, std::memory_order_relaxed);
    Count();
  }
  void RmsNorm(const float* x, const float* weight, float eps, int32_t n, void* out,
               DType out_dtype, int64_t piece_stride) const override {
    kernels_->RmsNorm(x, weight, eps, n, out, out_dtype, piece_stride);
    Count();
  }
  void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int32_t n,
                 void* out, DType out_dtype) const override {
    kernels_->LayerNorm(x, weight, bias, eps, n, out, out_dtype);
    Count();
  }
  void Activate(Activation activation, const float* x, int32_t n, void* out,
                DType out_dtype) const override {
    kernels_->Activate(activation, x, n, out, out_dtype);
    Count();
  }
  void Rotate(const RotateCall& call) const override {
    kernels_->Rotate(call);
    Count();
  }
  void SiluMul(const float* gate, const float* up, int32_t n, void* out,
               DType out_dtype) const override {
    kernels_->SiluMul(gate, up, n, out, out_dtype);
    Count();
  }
  void SigmoidMul(const float* gate, int32_t n, void* x, DType dtype) const override {
    kernels_->SigmoidMul(gate, n, x, dtype);
    Count();
  }
  // Not counted: it ends the ticket of a product, which is.
  void SoftCap(float* x, int32_t n, float cap) const override { kernels_->SoftCap(x, n, cap); }
  void Conv(const ConvCall& call) const override {
    kernels_->Conv(call);
    Count();
  }
  void Delta(const DeltaCall& call) const override {
    kernels_->Delta(call);
    Count();
  }
  void Convert(const float* x, int32_t n, void* out, DType out_dtype) const override {
    kernels_->Convert(x, n, out, out_dtype);
    Count();
  }
  float Quantize(const void* x, DType dtype, int32_t n, int8_t* out) const override {
    const float scale = kernels_->Quantize(x, dtype, n, out);
    Count();
    return scale;
  }
  void QuantizeBlocks(const void* x, DType dtype, int32_t n, int8_t* out,
                      RowBlock* blocks) const override {
    kernels_->QuantizeBlocks(x, dtype, n, out, blocks);
    Count();
  }
  Largest FindLargest(const float* x, int32_t n, float* group_max) const override {
    const Largest largest = kernels_->FindLargest(x, n, group_max);
    Count();
    return largest;
  }
  float LogSumExp(const float* x, float max, int32_t n) const override {
    const float sum = kernels_->LogSumExp(x, max, n);
    Count();
    return sum;
  }
  void ExpShifted(const float* x, float shift, int32_t n, float* out) const override {
    kernels_->ExpShifted(x, shift, n, out);
    Count();
  }
  void Weigh(const float* x, float max, float temperature, int32_t n, float* weights,
             double* group_sums) const override {
    kernels_->Weigh(x, max, temperature, n, weights, group_sums);
    Count();
  }
  int32_t FindAtLeast(const float* x, int32_t n, float floor, const float* group_max,
                      int32_t* ids) const override {
    const int32_t count = kernels_->FindAtLeast(x, n, floor, group_max, ids);
    Count();
    return count;
  }
  int32_t RankOf(const float* x, int32_t n, int32_t index) const override {
    const int32_t rank = kernels_->RankOf(x, n, index);
    Count();
    return rank;
  }

 private:
  void Count() const {
    num_calls_.fetch_add(1, std::memory_order_relaxed);
    if (calls_left_.fetch_sub(1, std::memory_order_relaxed) == 0) stop_ = true;
  }

  std::unique_ptr<Kernels> kernels_;
  std::function<void(const GemmCall&)> gemm_observer_;
  mutable std::mutex mutex_;  // of its calls
  mutable std::atomic<int64_t> calls_left_{-1};
  mutable std::atomic<int64_t> num_calls_{0};
  mutable std::atomic<int64_t> num_attention_calls_{0};
  mutable std::atomic<bool> stop_{false};
};

// The instruction sets of this machine that form one numeric class: equal bits.
inline std::vector<Isa> FmaIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512}) {
    if (MakeKernels(isa).ok()) isas.push_back(isa);
  }
  return isas;
}

// The instruction sets of this machine for tests that run many whole passes: all numeric
// classes but the scalar code, which takes some thirty times as long; it alone where there is
// nothing else.
inline std::vector<Isa> VectorIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    if (MakeKernels(isa).ok()) isas.push_back(isa);
  }
  if (isas.empty()) isas.push_back(Isa::kScalar);
  return isas;
}

// Every way that hybrid prefilling keeps the chunks' outputs.
inline constexpr ChunkOutputs kAllOutputs[] = {ChunkOutputs::kInPlace, ChunkOutputs::kPreallocated,
                                               ChunkOutputs::kCollected};

struct LoadOptions {
  std::string dtype = "auto";
  std::string quantization = "auto";
  Isa isa = SelectIsa().value();
  int threads = 1;
  int32_t num_blocks = 64;
  bool rounds_states = true;  // DecisionHeadFields::rounds_states
  bool adds_sinks = false;    // to each head, in a model whose files have none
};

// Weights, kernels, threads, KV memory and states, which at first are full of NaNs: a key or value
// that nobody wrote must not reach a result.
class LoadedModel {
 public:
  using Options = LoadOptions;

  explicit LoadedModel(const std::string& dir, const Options& options = {})
      : team_(options.threads), kernels_(MakeKernels(options.isa).value()) {
    const ModelConfig config = LoadModelConfig(dir).value();
    const DType dtype = ChooseComputeType(ComputeChoiceOf(options.dtype), config.file_dtype);
    const ModelFiles files = OpenModelFiles(dir).value();
    const WeightTypes types =
        ChooseWeightTypes(QuantizationOf(options.quantization), dtype, config, files);
    weights_ = LoadWeights(files, config, types, team_, {}).value();
    weights_.config.decision.rounds_states = options.rounds_states;
    if (options.adds_sinks) AddSinks();
    const auto angles = [&](const RopeConfig& rope) {
      const int32_t num_positions = std::min(config.max_position, 2048);
      return std::make_unique<RopeAngles>(MakeRopeTable(rope, config.head_dim, num_positions),
                                          num_positions, team_);
    };
    if (config.has_rope()) rope_ = angles(config.rope);
    if (config.has_local_layers()) local_rope_ = angles(config.local.rope);
    context_ = {
        &weights_,
        &kernels_,
        rope_.get(),
        {dtype, config.num_kv_layers(), options.num_blocks, config.num_kv_heads, config.head_dim},
        nullptr,
        &team_};
    context_.state_layout = StateLayout(config, options.num_blocks);
    states_ = AlignedBuffer(context_.state_layout.total_bytes());
    if (states_.size() > 0) std::memset(states_.data(), 0xff, states_.size());
    context_.states = reinterpret_cast<float*>(states_.data());
    kv_ = AlignedBuffer(context_.kv_layout.total_bytes());
    OverwriteKv();
    context_.kv = kv_.data();
    context_.local_rope = local_rope_.get();
  }

  const ForwardContext& context() const { return context_; }
  StoppingKernels& kernels() { return kernels_; }
  const ModelWeights& weights() const { return weights_; }
  const ModelConfig& config() const { return weights_.config; }
  int32_t vocab() const { return config().vocab_size; }
  // Sets all keys and values to NaNs.
  void OverwriteKv() { std::memset(kv_.data(), 0xff, kv_.size()); }
  // Behind the pooling of embeddings. Before a pass is made.
  void AddDense(DenseWeights dense) { weights_.embedding_dense.push_back(std::move(dense)); }

 private:
  void AddSinks() {
    weights_.config.decoder.attention_sinks = true;
    float sink = -1;
    for (LayerWeights& layer : weights_.layers) {
      for (int32_t head = 0; head < config().num_heads; ++head) {
        layer.sinks.push_back(sink += 0.375f);
      }
    }
  }

  ThreadTeam team_;
  StoppingKernels kernels_;
  ModelWeights weights_;
  std::unique_ptr<RopeAngles> rope_, local_rope_;
  AlignedBuffer kv_, states_;
  ForwardContext context_;
};

// Blocks first, first + 1, ... enough for `num_tokens`.
inline std::vector<int32_t> Blocks(int32_t first, int32_t num_tokens) {
  std::vector<int32_t> blocks((num_tokens + kKvBlockTokens - 1) / kKvBlockTokens);
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

// Gives each row without one a state in the slot with the number of its first block: for models
// with linear layers.
inline void SetStates(ForwardBatch* batch) {
  for (ForwardRow& row : batch->rows) {
    const ForwardState& state = row.state;
    const bool is_set = state.to != ForwardState::kNone || state.from != ForwardState::kNone;
    if (is_set || row.block_table.empty()) continue;
    row.state.to = row.block_table[0];
    if (row.begin > 0) row.state.from = row.state.to;
  }
}

// Runs the pass that pass->batch() describes, through every stop; the wanted logits in order.
inline std::vector<Logits> RunPass(ForwardPass* pass, int32_t vocab,
                                   std::atomic<bool>* stop = nullptr, int* num_stops = nullptr) {
  SetStates(&pass->batch());
  pass->Begin();
  std::vector<Logits> all;
  for (;;) {
    switch (pass->Run(stop)) {
      case ForwardStatus::kStopped:
        stop->store(false);
        if (num_stops != nullptr) ++*num_stops;
        break;
      case ForwardStatus::kLogits:
        for (int32_t i = 0; i < pass->num_logit_rows(); ++i) {
          all.emplace_back(pass->logits(i), pass->logits(i) + vocab);
        }
        break;
      case ForwardStatus::kOutputs:
        break;  // of other kinds than logits
      case ForwardStatus::kDone:
        return all;
    }
  }
}

// Runs tokens [begin, end) of a sequence alone; the logits after each.
inline std::vector<Logits> RunAlone(ForwardPass* pass, const std::vector<int32_t>& tokens,
                                    int32_t begin, int32_t end, const std::vector<int32_t>& blocks,
                                    int32_t vocab) {
  ForwardBatch& batch = pass->batch();
  batch.Clear();
  batch.AddRow(std::span(tokens).subspan(begin, end - begin), begin, blocks, false);
  for (int32_t i = 0; i < end - begin; ++i) batch.logit_tokens.push_back(i);
  return RunPass(pass, vocab);
}

inline bool SameBits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Model directories of tests/data/models, sorted.
inline std::vector<std::string> GoldenModelDirs() {
  std::vector<std::string> dirs;
  for (const auto& entry :
       std::filesystem::directory_iterator(SKEIN_SOURCE_DIR "/tests/data/models")) {
    if (entry.is_directory()) dirs.push_back(entry.path().string());
  }
  std::sort(dirs.begin(), dirs.end());
  return dirs;
}

}  // namespace skein::testing
