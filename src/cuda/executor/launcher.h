#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/kernels/args.h"

namespace skein::cuda {

// Gives a device the launches of one pass.
class Launcher {
 public:
  // Both are borrowed.
  Launcher(const CudaContext& context, Activations* memory)
      : context_(context), dtype_(context.model.weights->dtype), memory_(memory) {}

  void Run(const Launch& launch) { context_.device->Run(launch); }

  // The norm of rows of x, which is [*, hidden].
  void Norm(const float* x, const float* weight, const int32_t* rows, int32_t num_rows,
            DType out_dtype, void* out, int64_t ldo);
  // out = in · w^T for `m` rows, from `first_row` of both on; in int8 and in blocks, the rows are
  // rounded first.
  void Multiply(const OperandRows& in, const DeviceMatrix& w, GemmOutput output, GemmArgs args,
                int32_t first_row = 0);
  // Its two parts. If w is in int8 or in blocks, Round rounds `num_rows` rows of `in` from
  // `first_row` on, which are then rows 0, 1, ... of the product. Otherwise it does nothing.
  void Round(const OperandRows& in, const DeviceMatrix& w, int32_t first_row, int32_t num_rows);
  // Sets the operands of the product.
  void SetOperands(const OperandRows& in, const DeviceMatrix& w, int32_t first_row,
                   GemmArgs* args) const;
  KvPointers KvOf(int32_t layer) const;
  // The rank's columns of an operand whose ranks have `width` columns together.
  std::byte* ColumnsIn(const Activations::Operand& operand, int64_t width) const;

 private:
  const CudaContext& context_;
  const DType dtype_;
  Activations* const memory_;
};

}  // namespace skein::cuda
