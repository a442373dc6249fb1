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
  // Above 0: the matrix has a second part, whose heads of so many rows alternate with this one's.
  int32_t head_rows = 0;
  int32_t first_in_head = 0;  // of these rows, behind those of the other part

  int32_t RowsOfMatrix() const { return head_rows > 0 ? 2 * num_rows : num_rows; }
  int32_t RowOfMatrix(int32_t row) const {
    if (head_rows == 0) return row;
    return 2 * (row / head_rows) * head_rows + first_in_head + row % head_rows;
  }
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
  // Each head's gate stands behind its q.
  const int32_t gated = config.decoder.attention_gate ? config.head_dim : 0;
  std::vector<Matrix> qkv = {{attn + "q_proj.weight", 0, q, gated},
                             {attn + "k_proj.weight", q, kv},
                             {attn + "v_proj.weight", q + kv, kv}};
  std::vector<Matrix> gate;
  if (gated > 0) gate = {{attn + "q_proj.weight", 0, q, gated, gated}};
  if (fused) qkv = {{attn + "qkv_proj.weight", 0, q + 2 * kv}};
  std::vector<Matrix> gate_up = {{mlp + "gate_proj.weight", 0, intermediate},
                                 {mlp + "up_proj.weight", padded, intermediate}};
  // If gate and up are one matrix in the files, their change fits only if no padding is between
  // them.
  if (fused) gate_up.clear();
  if (fused && padded == intermediate) gate_up = {{mlp + "gate_up_proj.weight", 0, 2 * padded}};
  std::array<Product, kNumLoraProducts> products = {
      {{qkv, q + 2 * kv, hidden},
       {{{attn + "o_proj.weight", 0, hidden}}, hidden, q},
       {gate_up, 2 * padded, hidden},
       {{{mlp + "down_proj.weight", 0, hidden}}, hidden, intermediate},
       {gate, q, hidden}}};
  if (!config.IsLinear(layer)) return products;
  const LinearLayers& linear = config.decoder.linear;
  const std::string at = prefix + "linear_attn.";
  const int32_t conv = linear.conv_width(), z_end = conv + linear.v_width();
  products[0] = {{{at + "in_proj_qkv.weight", 0, conv},
                  {at + "in_proj_z.weight", conv, linear.v_width()},
                  {at + "in_proj_b.weight", z_end, linear.num_v_heads},
                  {at + "in_proj_a.weight", z_end + linear.num_v_heads, linear.num_v_heads}},
                 linear.width(),
                 hidden};
  products[1] = {{{at + "out_proj.weight", 0, hidden}}, hidden, linear.v_width()};
  products[4] = {};
  return products;
}

class Packer {
 public:
  Packer(const LoraAdapter& adapter, DType compute) : adapter_(adapter), compute_(compute) {}

  Status Pack(const Product& product, LoraPair* pair) {
    std::vector<const Matrix*> changed;
    for (const Matrix& matrix : product.matrices) {
      const LoraChange* change = adapter_.Find(matrix.name);
      if (change == nullptr) continue;
      if (change->num_outputs != matrix.RowsOfMatrix() ||
          change->num_inputs != product.num_inputs) {
        return {StatusCode::kInvalidArgument,
                "the adapter changes '" + matrix.name + "' as " +
                    ShapeString({change->num_outputs, change->num_inputs}) + "; the model's is " +
                    ShapeString({matrix.RowsOfMatrix(), product.num_inputs})};
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
        const float* b = change.b.data() + int64_t{changed[i]->RowOfMatrix(r)} * rank;
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
  if (config.is_encoder() || config.num_experts > 0) {
    return Status(StatusCode::kUnsupported,
                  "an adapter for " + config.ArchitectureName() +
                      ": adapters are served for decoders without experts");
  }
  const LinearLayers& linear = config.decoder.linear;
  if (linear.tiled_v_heads && linear.num_v_heads != linear.num_k_heads) {
    return Status(StatusCode::kUnsupported,
                  "an adapter for a GGUF file of " + config.ArchitectureName() +
                      ", whose heads have another order; make a directory of the file with `skein "
                      "model convert`, which can merge the adapter, too");
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

Result<std::vector<LoraWeights>> LoadAdapters(const std::vector<std::string>& dirs,
                                              const ModelConfig& config, DType compute) {
  std::vector<LoraWeights> adapters;
  for (const std::string& dir : dirs) {
    SKEIN_ASSIGN_OR_RETURN(const LoraAdapter adapter, LoraAdapter::Open(dir));
    Result<LoraWeights> weights = LoadLoraWeights(adapter, config, compute);
    if (!weights.ok()) {
      return Status(weights.status().code(), dir + ": " + weights.status().message());
    }
    adapters.push_back(std::move(*weights));
  }
  return adapters;
}

}  // namespace skein
