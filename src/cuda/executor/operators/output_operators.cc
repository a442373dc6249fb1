#include "cuda/executor/operators/output_operators.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {

void OutputOperators::Begin(int32_t index, const OutputChunk& chunk, int32_t num_outputs,
                            const float* result, std::span<const LogitNeeds> needs) {
  index_ = index;
  chunk_ = chunk;
  num_outputs_ = num_outputs;
  result_ = result;
  needs_ = needs;
}

void OutputOperators::Run(int op) {
  switch (op) {
    case kOutputNorm:
      return Norm();
    case kOutputMean:
      return Mean();
    case kHeadDense:
      return HeadDense();
    case kHead:
      return Head();
    default:
      SKEIN_CHECK(false);
  }
}

void OutputOperators::Norm() {
  if (tokens().means != nullptr) return NormTo(normed(), nullptr);
  if (are_states()) return NormTo(memory_->outputs.as<float>(), nullptr);
  NormTo(nullptr, &memory_->output_h);
}

void OutputOperators::NormTo(float* normed, const Activations::Operand* rounded) {
  const DeviceWeights& weights = *context_.weights;
  const int32_t hidden = config().hidden_size;
  const int32_t num_rows = std::max(tokens().num_tokens, num_outputs_);
  if (!config().is_encoder()) {
    return launcher_.Norm(result_, weights.final_norm, tokens().tokens, num_rows,
                          rounded == nullptr ? DType::kF32 : dtype_,
                          rounded == nullptr ? normed : rounded->buffer.as<void>(),
                          rounded == nullptr ? hidden : rounded->width);
  }
  launcher_.Run(
      LayerNormLaunch(dtype_, {.x = result_,
                               .ldx = hidden,
                               .rows = tokens().tokens,
                               .weight = weights.final_norm,
                               .bias = weights.final_norm_bias,
                               .num_rows = num_rows,
                               .width = hidden,
                               .eps = config().LayerNormEps(config().num_layers),
                               .normed = normed,
                               .out = rounded == nullptr ? nullptr : rounded->buffer.as<void>(),
                               .ldo = rounded == nullptr ? 0 : rounded->width}));
}

void OutputOperators::Mean() {
  if (tokens().means == nullptr) return;
  const int32_t hidden = config().hidden_size;
  launcher_.Run(MeanLaunch({.x = normed(),
                            .rows = tokens().means,
                            .num_means = num_outputs_,
                            .width = hidden,
                            .out = memory_->outputs.as<float>()}));
  if (!are_classes()) return;
  const Activations::Operand& h = memory_->output_h;
  launcher_.Norm(memory_->outputs.as<float>(), nullptr, nullptr, num_outputs_, dtype_,
                 h.buffer.as<void>(), h.width);
}

void OutputOperators::HeadDense() {
  const DeviceWeights& weights = *context_.weights;
  const DeviceMatrix& w = weights.head_dense;
  if (!are_classes() || w.n == 0) return;
  const Activations::Operand& h = memory_->output_h;
  float* const sums = memory_->outputs.as<float>();
  launcher_.Multiply(h, w, GemmOutput::kStore,
                     {.bias = weights.head_dense_bias,
                      .m = num_outputs_,
                      .columns = w.n,
                      .out = sums,
                      .ldo = w.n});
  const bool norms = weights.head_norm != nullptr;
  launcher_.Run(ActivateLaunch(norms ? DType::kF32 : dtype_,
                               {.gate = *GateOf(context_.model.weights->head_activation),
                                .x = sums,
                                .num_rows = num_outputs_,
                                .width = w.n,
                                .out = norms ? sums : h.buffer.as<void>(),
                                .ldo = norms ? w.n : h.width}));
  if (!norms) return;
  launcher_.Run(LayerNormLaunch(dtype_, {.x = sums,
                                         .ldx = w.n,
                                         .weight = weights.head_norm,
                                         .bias = weights.head_norm_bias,
                                         .num_rows = num_outputs_,
                                         .width = w.n,
                                         .eps = config().encoder.layer_norm_eps,
                                         .out = h.buffer.as<void>(),
                                         .ldo = h.width}));
}

int32_t OutputOperators::head_columns() const {
  if (are_states()) return 0;
  if (chunk_.kind != OutputKind::kLabels) return head().n;
  return static_cast<int32_t>(tokens().panel_ids.size()) * kPanelCols;
}

void OutputOperators::Head() {
  if (are_states()) return;
  launcher_.Multiply(memory_->output_h, head(), GemmOutput::kStore,
                     {.bias = are_classes() ? context_.weights->head_out_bias : nullptr,
                      .panels = chunk_.kind == OutputKind::kLabels ? tokens().panels : nullptr,
                      .m = num_outputs_,
                      .columns = head_columns(),
                      .out = memory_->outputs.as<void>(),
                      .ldo = head_columns()});
  const DecoderFields& decoder = config().decoder;
  if (are_classes() || (decoder.logits_divisor == 1 && decoder.logits_cap == 0)) return;
  launcher_.Run(FinishLogitsLaunch({.x = memory_->outputs.as<float>(),
                                    .num_logits = int64_t{num_outputs_} * head_columns(),
                                    .divisor = decoder.logits_divisor,
                                    .cap = decoder.logits_cap}));
}

void OutputOperators::Copy(bool has_tokens) {
  has_left_ = false;
  if (chunk_.kind == OutputKind::kLogits) return CopyLogits(has_tokens);
  context_.device->CopyToHost(memory_->on_host.as<void>(), memory_->outputs.as<void>(),
                              int64_t{chunk_.count} * width() * sizeof(float));
}

bool OutputOperators::IsDrawn(int32_t i) const {
  if (chunk_.kind != OutputKind::kLogits) return false;
  const LogitNeeds& needs = needs_[chunk_.first + i];
  return needs.largest_alone || needs.draw;
}

void OutputOperators::DrawTokens() {
  FindLargest();
  if (tokens().draws == nullptr) return;
  const int32_t vocab = config().vocab_size;
  const DrawArgs args = {.logits = memory_->outputs.as<float>(),
                         .ldx = vocab,
                         .draws = tokens().draws,
                         .num_rows = num_outputs_,
                         .vocab = vocab,
                         .rows = memory_->largest.of_rows.as<RowLargest>(),
                         .best = memory_->largest.best.as<float>(),
                         .sums = memory_->largest.sums.as<double>()};
  launcher_.Run(WeighGroupsLaunch(args));
  launcher_.Run(DrawLaunch(args));
}

void OutputOperators::FindLargest() {
  const int32_t vocab = config().vocab_size;
  const FindLargestArgs args = {.x = memory_->outputs.as<float>(),
                                .ldx = vocab,
                                .num_rows = num_outputs_,
                                .width = vocab,
                                .num_parts = LargestParts(vocab),
                                .parts = memory_->largest.parts.as<PartLargest>(),
                                .out = memory_->largest.of_rows.as<RowLargest>()};
  launcher_.Run(FindLargestLaunch(args));
  if (args.num_parts > 1) launcher_.Run(MergeLargestLaunch(args));
}

void OutputOperators::CopyRows(int32_t begin, int32_t end) {
  const int64_t vocab = config().vocab_size;
  context_.device->CopyToHost(memory_->on_host.as<float>() + begin * vocab,
                              memory_->outputs.as<float>() + begin * vocab,
                              (end - begin) * vocab * sizeof(float));
}

bool OutputOperators::CopyLeft() {
  if (!has_left_) return false;
  has_left_ = false;
  bool any = false;
  for (int32_t i = 0; i < chunk_.count; ++i) {
    if (!IsDrawn(i) || !IsLeft(i)) continue;
    CopyRows(i, i + 1);
    any = true;
  }
  return any;
}

// The rows that are wanted, run by run, and the tokens of the others.
void OutputOperators::CopyLogits(bool has_tokens) {
  const int32_t count = chunk_.count;
  int32_t num_copied = 0;
  for (int32_t begin = 0; begin < count; ++begin) {
    if (IsDrawn(begin)) continue;
    int32_t end = begin + 1;
    while (end < count && !IsDrawn(end)) ++end;
    CopyRows(begin, end);
    num_copied += end - begin;
    begin = end - 1;
  }
  if (num_copied == count) return;
  if (!has_tokens) DrawTokens();
  has_left_ = tokens().draws != nullptr;
  context_.device->CopyToHost(memory_->largest.on_host.as<void>(),
                              memory_->largest.of_rows.as<void>(), count * sizeof(RowLargest));
}

float* OutputOperators::output(int32_t i) {
  SKEIN_CHECK(i >= 0 && i < chunk_.count);
  float* const output = memory_->on_host.as<float>() + int64_t{i} * width();
  if (chunk_.kind != OutputKind::kLabels) return output;
  const float* from = output;
  for (const int32_t panel : tokens().panel_ids) {
    const int32_t begin = panel * kPanelCols;
    std::copy_n(from, std::min(kPanelCols, config().vocab_size - begin), &wide_[begin]);
    from += kPanelCols;
  }
  return wide_.data();
}

}  // namespace skein::cuda
