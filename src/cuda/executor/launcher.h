#pragma once

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
  void Multiply(const Activations::Operand& in, const DeviceMatrix& w, GemmOutput output,
                GemmArgs args, int32_t first_row = 0);
  KvPointers KvOf(int32_t layer) const;

 private:
  const CudaContext& context_;
  const DType dtype_;
  Activations* const memory_;
};

}  // namespace skein::cuda
