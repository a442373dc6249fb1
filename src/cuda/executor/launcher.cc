#include "cuda/executor/launcher.h"

#include <cstddef>

#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

int64_t BytesOfRows(int32_t num_rows, int64_t width, DType dtype) {
  return num_rows * width * static_cast<int64_t>(SizeOf(dtype));
}

}  // namespace

void Launcher::Norm(const float* x, const float* weight, const int32_t* rows, int32_t num_rows,
                    DType out_dtype, void* out, int64_t ldo) {
  Run(RmsNormLaunch(out_dtype, {.x = x,
                                .ldx = context_.model.weights->config.hidden_size,
                                .rows = rows,
                                .weight = weight,
                                .num_rows = num_rows,
                                .width = context_.model.weights->config.hidden_size,
                                .eps = context_.model.weights->config.decoder.rms_norm_eps,
                                .out = out,
                                .ldo = ldo}));
}

void Launcher::Multiply(const OperandRows& in, const DeviceMatrix& w, GemmOutput output,
                        GemmArgs args, int32_t first_row) {
  const DType out_dtype = output == GemmOutput::kGated ? dtype_ : DType::kF32;
  args.out = static_cast<std::byte*>(args.out) + BytesOfRows(first_row, args.ldo, out_dtype);
  Round(in, w, first_row, args.m);
  SetOperands(in, w, first_row, &args);
  const Device& device = *context_.device;
  Run(GemmLaunch(
      w.dtype, output, dtype_, args,
      {.shared_bytes = device.shared_bytes(), .persistent_blocks = device.persistent_blocks()}));
}

void Launcher::Round(const OperandRows& in, const DeviceMatrix& w, int32_t first_row,
                     int32_t num_rows) {
  if (!TakesInt8Rows(w.dtype)) return;
  const QuantizeArgs args = {.x = in.data + BytesOfRows(first_row, in.width, in.dtype),
                             .ldx = in.width,
                             .num_rows = num_rows,
                             .width = static_cast<int32_t>(in.filled),
                             .out = memory_->int8.as<int8_t>(),
                             .ldo = PaddedWidth(in.filled, DType::kInt8),
                             .scales = memory_->scales.as<float>()};
  Run(w.dtype == DType::kInt8 ? QuantizeLaunch(dtype_, args) : QuantizeBlocksLaunch(dtype_, args));
}

void Launcher::SetOperands(const OperandRows& in, const DeviceMatrix& w, int32_t first_row,
                           GemmArgs* args) const {
  args->w = w.panels;
  args->words = w.words;
  if (!TakesInt8Rows(w.dtype)) {
    args->a = in.data + BytesOfRows(first_row, in.width, in.dtype);
    args->lda = BytesOfRows(1, in.width, in.dtype) / 4;
    return;
  }
  args->a = memory_->int8.as<void>();
  // Integers behind a row meet the zeros behind the weights' rows.
  args->lda = PaddedWidth(in.filled, DType::kInt8) / 4;
  args->a_scales = memory_->scales.as<float>();
  args->w_scales = w.scales;
  args->places = w.places;
}

KvPointers Launcher::KvOf(int32_t layer) const {
  const KvLayout& kv = context_.model.kv_layout;
  return {.pool = context_.kv + context_.model.weights->config.KvLayer(layer) * kv.layer_bytes(),
          .own = memory_->own_kv.as<uint8_t>(),
          .num_pool_blocks = kv.num_blocks,
          .block_bytes = static_cast<int64_t>(kv.block_bytes()),
          .head_bytes = static_cast<int64_t>(kv.head_bytes())};
}

std::byte* Launcher::ColumnsIn(const Activations::Operand& operand, int64_t width) const {
  const int32_t begin = ColumnsOf(context_.rank, static_cast<int32_t>(width)).begin;
  return operand.buffer.as<std::byte>() + BytesOfRows(1, begin, operand.dtype);
}

}  // namespace skein::cuda
