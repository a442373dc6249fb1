#include "cuda/executor/operators/lora_operators.h"

#include <algorithm>
#include <cstddef>

#include "cuda/kernels/launches.h"

namespace skein::cuda {

void LoraOperators::Append(int32_t adapter, int32_t index, std::vector<Run>* runs) {
  if (adapter == 0) return;
  if (runs->empty() || runs->back().adapter != adapter ||
      runs->back().first + runs->back().count != index) {
    runs->push_back({adapter, index, 0});
  }
  ++runs->back().count;
}

void LoraOperators::Assign(const ForwardBatch& batch, const BatchLayout& layout) {
  of_tokens_.clear();
  of_active_.clear();
  if (!layout.has_adapters()) return;
  for (const ForwardRow& row : batch.rows) {
    for (int32_t i = 0; i < row.num_tokens; ++i) {
      Append(row.adapter, row.first_token + i, &of_tokens_);
    }
  }
  for (int32_t i = 0; i < layout.num_active(); ++i) Append(layout.AdapterAt(i), i, &of_active_);
}

template <class Fn>
void LoraOperators::ForEachRun(const Product& product, const Fn& fn) const {
  const int32_t begin = product.first_row + product.slice.first;
  const int32_t end = begin + product.slice.count;
  for (const Run& run : product.gathered ? of_active_ : of_tokens_) {
    const int32_t first = std::max(run.first, begin);
    const int32_t count = std::min(run.first + run.count, end) - first;
    const DeviceAdapter& adapter = context_.weights->adapters[run.adapter - 1];
    const DeviceLoraPair& pair =
        adapter.layers[product.layer][static_cast<size_t>(product.product)];
    if (count > 0 && pair.a.n > 0) fn(pair, first - product.first_row, count);
  }
}

bool LoraOperators::Changes(const Product& product) const {
  bool changes = false;
  ForEachRun(product, [&](const DeviceLoraPair&, int32_t, int32_t) { changes = true; });
  return changes;
}

void LoraOperators::Add(const Product& product, const OperandRows& in, float* out, int64_t ldo) {
  ForEachRun(product, [&](const DeviceLoraPair& pair, int32_t first, int32_t count) {
    const Activations::Operand& u = memory_->lora.u;
    launcher_.Multiply(
        in, pair.a, GemmOutput::kStore,
        {.m = count, .columns = pair.a.n, .out = u.buffer.as<void>(), .ldo = u.width}, first);
    launcher_.Multiply(u, pair.b, GemmOutput::kAdd,
                       {.m = count, .columns = pair.b.n, .out = out, .ldo = ldo}, first);
  });
}

}  // namespace skein::cuda
