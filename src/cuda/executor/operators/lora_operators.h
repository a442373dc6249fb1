#pragma once

#include <cstdint>
#include <vector>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/operator_slices.h"
#include "model/forward/batch.h"
#include "model/forward/layout.h"
#include "model/weights/lora_weights.h"

namespace skein::cuda {

// The changes that adapters make to products, for one pass on a device: out += b · (a · in), for
// each run of adjacent rows with the same adapter (docs/numerics.md, "Adapters").
class LoraOperators {
 public:
  // Everything is borrowed.
  LoraOperators(const CudaContext& context, const Activations* memory, Launcher* launcher)
      : context_(context), memory_(memory), launcher_(*launcher) {}

  // Finds the runs of a batch. `layout`: with the active tokens of the last layer.
  void Assign(const ForwardBatch& batch, const BatchLayout& layout);

  // The product of a layer whose change is wanted, and its rows: those of `slice`, which count from
  // `first_row`, among the active tokens of the last layer if `gathered`, else among all tokens.
  struct Product {
    LoraProduct product = LoraProduct::kQkv;
    int32_t layer = 0;
    int32_t first_row = 0;
    OperatorSlice slice;
    bool gathered = false;
  };
  bool Changes(const Product& product) const;
  // in, out [rows, ldo]: from first_row on, not of the slice alone.
  void Add(const Product& product, const OperandRows& in, float* out, int64_t ldo);

 private:
  struct Run {
    int32_t adapter = 0;  // as ForwardRow::adapter
    int32_t first = 0, count = 0;
  };
  // Calls fn(pair, first, count) for each run of the product's rows that an adapter changes.
  // `first` counts from the product's first_row.
  template <class Fn>
  void ForEachRun(const Product& product, const Fn& fn) const;
  static void Append(int32_t adapter, int32_t index, std::vector<Run>* runs);

  const CudaContext& context_;
  const Activations* const memory_;
  Launcher& launcher_;
  std::vector<Run> of_tokens_, of_active_;  // ascending; without rows of the base model
};

}  // namespace skein::cuda
