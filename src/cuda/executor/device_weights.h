#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/rank.h"
#include "cuda/kernels/args.h"
#include "model/weights/lora_weights.h"
#include "model/weights/weights.h"

namespace skein::cuda {

// A copy of a PackedWeight on the device, byte for byte. Null panels: the model has no such matrix.
struct DeviceMatrix {
  int32_t n = 0;
  int32_t k = 0;
  int32_t words = 0;  // words of 32 bits in a row, padding included
  DType dtype = DType::kBf16;
  const void* panels = nullptr;
  const float* scales = nullptr;       // [n], of int8
  const PanelPlace* places = nullptr;  // [n / 16], of blocks

  int32_t num_panels() const { return (n + kPanelCols - 1) / kPanelCols; }
};

// The gate of an MLP, or the function of a head, with this activation; none: no kernel has it.
std::optional<Gate> GateOf(Activation activation);

// As LinearWeights.
struct DeviceLinear {
  DeviceMatrix in;
  const float* conv = nullptr;
  const double* rates = nullptr;  // [num_v_heads]: e^a_log
  const float* dt_bias = nullptr;
  const float* norm = nullptr;
};

// As LayerWeights. A bias or norm that the model lacks is null.
struct DeviceLayer {
  const float* attn_norm = nullptr;
  const float* attn_norm_bias = nullptr;
  DeviceMatrix qkv;
  const float* qkv_bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const float* sinks = nullptr;  // of the heads of all ranks
  // LayerWeights::distance_keys, then distance_queries.
  DeviceMatrix distances;
  DeviceMatrix attn_gate;
  DeviceLinear linear;
  DeviceMatrix o;
  const float* o_bias = nullptr;
  const float* mlp_norm = nullptr;
  const float* mlp_norm_bias = nullptr;
  DeviceMatrix gate_up;
  const float* gate_up_bias = nullptr;
  DeviceMatrix down;
  const float* down_bias = nullptr;
  const float* post_attn_norm = nullptr;
  const float* post_mlp_norm = nullptr;

  // A mixture of experts, of which gate_up and down are the shared one. The matrices of the others
  // lie one behind the other, in the shape of one. Each has whole panels of columns.
  DeviceMatrix router;  // behind its panels, the row of the shared expert's gate, if there is one
  const float* router_bias = nullptr;
  DeviceMatrix expert_gate_up;
  const float* expert_gate_up_bias = nullptr;
  DeviceMatrix expert_down;
  const float* expert_down_bias = nullptr;
};

// As LoraPair. The rank of `a` is rounded up to whole rows of u, by zeros.
struct DeviceLoraPair {
  DeviceMatrix a, b;
};
// An adapter on the device: [layers][LoraProduct].
struct DeviceAdapter {
  std::vector<std::array<DeviceLoraPair, kNumLoraProducts>> layers;
};

// kUnsupported, with the field, unless the device computes the layers of this model: those of a
// decoder or an encoder, with attention or linear, dense or mixtures of experts.
Status CheckDeviceComputes(const ModelWeights& weights);

// Whether the device computes the outputs of this model, too: logits, labels, embeddings, hidden
// states, and classes by a head whose activation it has. Otherwise it computes the layers, and the
// processor the outputs: those of decision models, sparse vectors, projections of states, and
// embeddings or classes behind other modules and activations.
bool DeviceComputesOutputs(const ModelWeights& weights);

// A rank's share of the weights of a model, on its device. Immutable. A matrix of a layer has the
// rows of the rank's columns alone; the embedding, norms, sinks and routers are whole. The weights
// behind the layers are on the rank that leads.
class DeviceWeights {
 public:
  // Copies the weights to the device. Fails as Device::Allocate and Device::Wait do. REQUIRES:
  // CheckDeviceComputes and CheckRanks are ok.
  static Result<std::unique_ptr<DeviceWeights>> Upload(const ModelWeights& weights,
                                                       const Rank& rank, Device* device);

  // Copies adapters of the model, too. Fails as Upload does.
  Status AddAdapters(const std::vector<LoraWeights>& adapters);

  std::vector<DeviceLayer> layers;
  std::vector<DeviceAdapter> adapters;
  const float* final_norm = nullptr;
  const float* final_norm_bias = nullptr;
  DeviceMatrix output;
  const void* embedding =
      nullptr;  // T [vocab, hidden]; null: the panels of the next, or of `output`
  DeviceMatrix embedding_blocks;
  // Those of encoders, as in ModelWeights; null where the model has no such table or norm.
  const float* positions = nullptr;
  const float* segments = nullptr;
  DistanceTerms distances;
  const float* head_input_norm = nullptr;  // DecisionHeadWeights::input_norm
  const float* head_input_norm_bias = nullptr;
  const float* type_embedding = nullptr;
  DeviceMatrix head_dense;  // a classifier's first matrix, or none
  const float* head_dense_bias = nullptr;
  const float* head_norm = nullptr;
  const float* head_norm_bias = nullptr;
  DeviceMatrix head_out;
  const float* head_out_bias = nullptr;
  int64_t bytes = 0;

 private:
  // Rows of a matrix, range behind range.
  using Rows = std::vector<ColumnRange>;
  using Matrices = std::vector<const PackedWeight*>;

  DeviceWeights(const Rank& rank, Device* device) : rank_(rank), device_(device) {}

  // Copies `bytes` bytes to newly allocated memory of the device.
  Result<const void*> Put(const void* data, size_t bytes);
  Status Put(const std::vector<float>& values, const float** out);
  Status Put(const PackedWeight& weight, DeviceMatrix* out) {
    return PutRows(weight, {{0, weight.n()}}, out);
  }
  // The same of these rows alone, which begin panels of their own.
  Status PutRows(const std::vector<float>& values, const Rows& rows, const float** out);
  Status PutRows(const PackedWeight& weight, const Rows& rows, DeviceMatrix* out) {
    return PutRows(Matrices{&weight}, rows, out);
  }
  // The same of matrices of one shape and type, one behind the other.
  Status PutRows(const Matrices& matrices, const Rows& rows, DeviceMatrix* out);
  Status PutBlocks(const Matrices& matrices, const Rows& rows, DeviceMatrix* out);
  // Starts the copies of these rows' panels, one behind the other. Returns the end.
  std::byte* CopyPanels(const PackedWeight& weight, const Rows& rows, std::byte* to);
  // Memory of the device that this object owns.
  Result<std::byte*> Allocate(size_t bytes);
  // The terms of all distances, from those of their buckets.
  Status PutDistances(const ModelWeights& weights);
  // A table in blocks, in the order of panels.
  Status PutEmbeddingBlocks(const ModelWeights& weights);
  Status PutExperts(const std::vector<ExpertWeights>& experts, PackedWeight ExpertWeights::*matrix,
                    std::vector<float> ExpertWeights::*bias, const Rows& rows, DeviceMatrix* out,
                    const float** out_bias);
  // The panels of `second` behind those of `first`. `second` may be empty.
  Status PutBoth(const PackedWeight& first, const PackedWeight& second, DeviceMatrix* out);
  Status PutPair(const LoraPair& pair, DeviceLoraPair* out);
  Status PutLinear(const LinearWeights& linear, DeviceLinear* out);
  Status PutLayer(const ModelConfig& config, const LayerWeights& layer, DeviceLayer* out);
  // The weights behind the layers, but the output matrix.
  Status PutOutputs(const ModelWeights& weights);

  const Rank rank_;
  Device* const device_;
  std::vector<Buffer> buffers_;
};

}  // namespace skein::cuda
