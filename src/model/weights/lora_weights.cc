#include "model/weights/lora_weights.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace skein {
namespace {

// A matrix of the model that is a part of a stacked product.
struct Matrix {
  std::string name;       // name of the matrix's weight
  int32_t first_row = 0;  // the matrix's first row in the product's output
  int32_t num_rows = 0;
};

struct Product {
  std::vector<Matrix> matrices;
  int32_t num_outputs = 0;
  int32_t num_inputs = 0;
};

// The products of a layer, in the order of LoraProduct.
std::array<Product, kNumLoraProducts> ProductsOf(const ModelConfig& config, int32_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const std::string attn = prefix + "self_attn.", mlp = prefix + "mlp.";
  const int32_t hidden = config.hidden_size, intermediate = config.intermediate_size;
  const int32_t q = config.num_heads * config.head_dim, kv = config.num_kv_heads * config.head_dim;
  const int32_t padded = config.intermediate_padded();
  const bool fused = config.decoder.fused_projections;
  std::vector<Matrix> qkv = {{attn + "q_proj.weight", 0, q},
                             {attn + "k_proj.weight", q, kv},
                             {attn + "v_proj.weight", q + kv, kv}};
  if (fused) qkv = {{attn + "qkv_proj.weight", 0, q + 2 * kv}};
  std::vector<Matrix> gate_up = {{mlp + "gate_proj.weight", 0, intermediate},
                                 {mlp + "up_proj.weight", padded, intermediate}};
  // If gate and up are one matrix in the files, their change fits only if no padding is between
  // them.
  if (fused) gate_up.clear();
  if (fused && padded == intermediate) gate_up = {{mlp + "gate_up_proj.weight", 0, 2 * padded}};
  return {{{qkv, q + 2 * kv, hidden},
           {{{attn + "o_proj.weight", 0, hidden}}, hidden, q},
           {gate_up, 2 * padded, hidden},
           {{{mlp + "down_proj.weight", 0, hidden}}, hidden, intermediate}}};
}

class Packer {
 public:
  Packer(const LoraAdapter& adapter, DType compute) : adapter_(adapter), compute_(compute) {}

  Status Pack(const Product& product, LoraPair* pair) {
    std::vector<const Matrix*> changed;
    for (const Matrix& matrix : product.matrices) {
      const LoraChange* change = adapter_.Find(matrix.name);
      if (change == nullptr) continue;
      if (change->num_outputs != matrix.num_rows || change->num_inputs != product.num_inputs) {
        return {StatusCode::kInvalidArgument,
                "the adapter changes '" + matrix.name + "' as " +
                    ShapeString({change->num_outputs, change->num_inputs}) + "; the model's is " +
                    ShapeString({matrix.num_rows, product.num_inputs})};
      }
      changed.push_back(&matrix);
      packed_.insert(matrix.name);
    }
    if (!changed.empty()) PackChanged(product, changed, pair);
    return Status::Ok();
  }
  // Whether a product packed so far contains this weight.
  bool HasPacked(const std::string& weight) const { return packed_.contains(weight); }

 private:
  void PackChanged(const Product& product, const std::vector<const Matrix*>& changed,
                   LoraPair* pair) const {
    const auto rank = static_cast<int32_t>(adapter_.rank());
    const int32_t stacked = rank * static_cast<int32_t>(changed.size());
    pair->a = PackedWeight(stacked, product.num_inputs, compute_);
    pair->b = PackedWeight(product.num_outputs, stacked, DType::kF32);
    std::vector<float> row(static_cast<size_t>(stacked));
    for (size_t i = 0; i < changed.size(); ++i) {
      const LoraChange& change = *adapter_.Find(changed[i]->name);
      const int32_t first = rank * static_cast<int32_t>(i);
      pair->a.PackRows(first, rank, change.a.data(), DType::kF32);
      std::ranges::fill(row, 0.0f);
      for (int32_t r = 0; r < changed[i]->num_rows; ++r) {
        const float* b = change.b.data() + int64_t{r} * rank;
        std::transform(b, b + rank, row.begin() + first,
                       [scale = adapter_.scale()](float v) { return scale * v; });
        pair->b.PackRows(changed[i]->first_row + r, 1, row.data(), DType::kF32);
      }
    }
  }

  const LoraAdapter& adapter_;
  const DType compute_;
  std::set<std::string> packed_;
};

}  // namespace

int32_t LoraWeights::max_rank() const {
  int32_t rank = 0;
  for (const LoraLayer& layer : layers) {
    for (const LoraPair& pair : layer.pairs) rank = std::max(rank, pair.rank());
  }
  return rank;
}

int32_t WidestRank(const std::vector<LoraWeights>& adapters) {
  int32_t rank = 0;
  for (const LoraWeights& adapter : adapters) rank = std::max(rank, adapter.max_rank());
  return rank;
}

size_t LoraWeights::bytes() const {
  size_t bytes = 0;
  for (const LoraLayer& layer : layers) {
    for (const LoraPair& pair : layer.pairs) bytes += pair.a.bytes() + pair.b.bytes();
  }
  return bytes;
}

Result<LoraWeights> LoadLoraWeights(const LoraAdapter& adapter, const ModelConfig& config,
                                    DType compute) {
  if (config.is_encoder() || config.num_experts > 0 || config.has_linear_layers()) {
    return Status(StatusCode::kUnsupported,
                  "an adapter for " + config.ArchitectureName() +
                      ": adapters are served for decoders without experts and linear attention");
  }
  LoraWeights weights;
  weights.layers.resize(config.num_layers);
  Packer packer(adapter, compute);
  for (int32_t i = 0; i < config.num_layers; ++i) {
    const auto products = ProductsOf(config, i);
    for (size_t p = 0; p < products.size(); ++p) {
      SKEIN_RETURN_IF_ERROR(packer.Pack(products[p], &weights.layers[i].pairs[p]));
    }
  }
  for (const auto& [name, shape] : adapter.Weights()) {
    if (packer.HasPacked(name)) continue;
    return Status(StatusCode::kInvalidArgument,
                  "the adapter changes '" + name +
                      "', which is no product of an attention or MLP layer of the model");
  }
  return weights;
}

}  // namespace skein
