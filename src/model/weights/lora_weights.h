#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "io/lora_adapter.h"
#include "kernels/packed_weight.h"
#include "model/config/config.h"

namespace skein {

// An adapter's change of one product of a layer: out += b · (a · in), both with f32 sums. The
// changes of several matrices in one product (q, k and v; gate and up) are stacked: their ranks
// follow one another in `a`, and `b` has zeros where a matrix does not depend on a rank.
struct LoraPair {
  PackedWeight a;  // [rank, in] in the compute type; empty: the adapter does not change the product
  PackedWeight b;  // [out, rank], f32, with the adapter's scale

  int32_t rank() const { return a.n(); }
};

// The products of a layer that an adapter can change. In a linear layer, kQkv is the product of
// its input, and kOutput that of out_proj. kAttnGate is there in gated attention alone.
enum class LoraProduct : uint8_t { kQkv, kOutput, kGateUp, kDown, kAttnGate };
inline constexpr size_t kNumLoraProducts = 5;

// An adapter's changes of one layer, indexed by product.
struct LoraLayer {
  std::array<LoraPair, kNumLoraProducts> pairs;

  const LoraPair& of(LoraProduct product) const { return pairs[static_cast<size_t>(product)]; }
};

// An adapter in memory (Hu et al., "LoRA", section 4.1). Its bits are those of the adapter, not
// those of a merged model: the base product is computed first, then the change is added
// (docs/numerics.md, "Adapters"). Immutable once loaded.
struct LoraWeights {
  std::vector<LoraLayer> layers;  // [num_layers]

  int32_t max_rank() const;  // the rank of the widest `a`
  size_t bytes() const;
};

// The widest change of a product in any of the adapters; 0: there are no changes.
int32_t WidestRank(const std::vector<LoraWeights>& adapters);

// Packs an adapter for a dense decoder whose compute type is `compute`. kUnsupported for an encoder
// or a mixture of experts, and for a file whose heads have another order than the adapter's
// (LinearLayers::tiled_v_heads); kInvalidArgument names a matrix that the model lacks, or whose
// shape is another.
Result<LoraWeights> LoadLoraWeights(const LoraAdapter& adapter, const ModelConfig& config,
                                    DType compute);

// Reads and packs the adapters in these directories. Fails as LoraAdapter::Open and LoadLoraWeights
// do.
Result<std::vector<LoraWeights>> LoadAdapters(const std::vector<std::string>& dirs,
                                              const ModelConfig& config, DType compute);

}  // namespace skein
