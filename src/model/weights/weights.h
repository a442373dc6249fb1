#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/threads/numa.h"
#include "base/threads/thread_team.h"
#include "io/model_files.h"
#include "kernels/packed_weight.h"
#include "model/config/config.h"
#include "model/dense_module.h"
#include "model/weights/compact_head_weights.h"
#include "model/weights/joint_head_weights.h"
#include "model/weights/weight_choices.h"

namespace skein {

// One expert of a mixture: an MLP in the layout of a layer's MLP. Biases that the model lacks are
// empty.
struct ExpertWeights {
  PackedWeight gate_up;  // [2 * expert_padded, hidden]
  std::vector<float> gate_up_bias;
  PackedWeight down;  // [hidden, expert_size]
  std::vector<float> down_bias;
};

// The weights that a linear layer has instead of q, k and v (LinearLayers).
struct LinearWeights {
  PackedWeight in;             // [width, hidden]: q, k, v, z, b, a
  std::vector<float> conv;     // [kConvWidth, conv_width]: for q, k, v
  std::vector<float> a_log;    // [num_v_heads]
  std::vector<float> dt_bias;  // [num_v_heads]
  std::vector<float> norm;     // [v_dim]: for each head's result
};

// One layer. A bias or norm that the model lacks is empty.
//
// BERT's family normalizes after each residual addition. So a layer's attn_norm is the norm that
// ends its input: that of the embeddings or of the layer before. final_norm ends the last layer. In
// ModernBERT, attn_norm of the first layer is the norm of the embeddings; this layer has no other
// norm before attention.
struct LayerWeights {
  std::vector<float> attn_norm;  // [hidden]
  std::vector<float> attn_norm_bias;
  PackedWeight qkv;  // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]: q, k, v
  std::vector<float> qkv_bias;
  std::vector<float> q_norm;  // [head_dim], or [num_heads * head_dim]
  std::vector<float> k_norm;  // [head_dim], or [num_kv_heads * head_dim]
  // [num_heads * num_rows, head_dim]: the rows of RelativeAttention's table as keys and as queries;
  // empty: no such table.
  PackedWeight distance_keys, distance_queries;
  std::vector<float> sinks;  // [num_heads]: AttentionRow::sink
  PackedWeight attn_gate;    // [num_heads * head_dim, hidden]; empty: no gate
  LinearWeights linear;      // for a linear layer, which has no qkv
  PackedWeight o;            // [hidden, num_heads * head_dim]; linear: [hidden, v_width]
  std::vector<float> o_bias;
  std::vector<float> post_attn_norm;  // [hidden]: for o's product
  std::vector<float> mlp_norm;        // [hidden]
  std::vector<float> mlp_norm_bias;
  // [2 * intermediate_padded, hidden]: gate in rows
  // [0, intermediate), up in rows [intermediate_padded, intermediate_padded + intermediate), zeros
  // between them. Without a gate (BERT's family): [intermediate_padded, hidden]. In a mixture of
  // experts, this and `down` are those of the shared expert, if there is one.
  PackedWeight gate_up;
  std::vector<float> gate_up_bias;
  PackedWeight down;  // [hidden, intermediate]
  std::vector<float> down_bias;
  std::vector<float> post_mlp_norm;  // [hidden]: for down's product

  // For a layer that is a mixture of experts.
  PackedWeight router;                 // [num_experts, hidden]
  std::vector<float> router_bias;      // [num_experts]
  std::vector<ExpertWeights> experts;  // [num_experts]
  PackedWeight shared_gate;            // [1, hidden]: of the shared expert; empty: none
};

// The types of a model in memory.
struct WeightTypes {
  WeightTypes(DType type) : compute(type), matrices(type) {}  // NOLINT: one type for both
  WeightTypes(DType compute_type, DType matrix_type)
      : compute(compute_type), matrices(matrix_type) {}

  DType compute;   // kF32 or kBf16
  DType matrices;  // the layers' and the output's matrices: `compute`, kInt8 or kBlocks
  // If `matrices` is kBlocks: the format to which they are rounded. REQUIRES: CanQuantize.
  BlockFormat block_format = BlockFormat::kQ4_0;
  // If true, matrices that the file has in blocks, or in integers that blocks hold exactly, are
  // kept as they are if their shapes allow. `matrices` is the type of the other matrices.
  bool keep_blocks = false;
};

// The head of a decision model, apart from its layers and its scorer (ModelWeights::head_dense).
// The actions' logits are
//
//   out · gelu(in · state + in_bias + features · f) + out_bias
//
// with the state of the first token, and the features f of the options' logits
// (model/decision_head.h).
struct DecisionHeadWeights {
  static constexpr int32_t kActionFeatures = 4;

  std::vector<float> input_norm;  // [hidden]: the encoder's final norm
  std::vector<float> input_norm_bias;
  std::vector<float> type_embedding;   // [kTypeEmbeddings, hidden]
  PackedWeight action_in;              // [kActionWidth, hidden]
  std::vector<float> action_in_bias;   // [kActionWidth]
  std::vector<float> action_features;  // [kActionWidth, kActionFeatures]
  std::vector<float> action_out;       // [num_actions, kActionWidth]
  std::vector<float> action_out_bias;  // [num_actions]
};

// The weights of a model in memory. Immutable once loaded.
struct ModelWeights {
  ModelConfig config;
  DType dtype = DType::kBf16;  // compute type; also that of all matrices without another type
  // The type of the layers' matrices and of `output`: dtype, or kInt8, or kBlocks if any of them
  // has blocks.
  DType matrix_dtype = DType::kBf16;
  // The format of blocks that were rounded; none if they are the file's own.
  std::optional<BlockFormat> rounded_to;
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden]
  std::vector<float> final_norm_bias;
  PackedWeight output;             // [vocab, hidden]; empty unless ModelConfig::has_output_matrix
  std::vector<float> output_bias;  // [vocab]; empty: none
  AlignedBuffer embedding;  // [vocab, hidden] in dtype; empty: `output` is tied and used instead
  const GgufType* embedding_blocks = nullptr;  // the type of the embedding if it is not dtype

  // For an encoder:
  std::vector<float> positions;  // [max_position, hidden], from first_position on
  std::vector<float> segments;   // [num_segments, hidden]
  // [num_heads, num_buckets]: RelativeBias, divided by the factor of the scores; empty: none
  std::vector<float> distance_bias;

  // For a classifier: out · norm(act(dense · h + dense_bias)) + out_bias. For a head that predicts
  // masked tokens, `output` and `output_bias` are in place of head_out.
  PackedWeight head_dense;  // [hidden, hidden]; empty: no such layer
  std::vector<float> head_dense_bias;
  std::vector<float> head_norm;  // [hidden]; empty: no norm
  std::vector<float> head_norm_bias;
  Activation head_activation = Activation::kNone;
  PackedWeight head_out;  // [num_classes, hidden]
  std::vector<float> head_out_bias;

  // For a decision model. Its scorer is a classifier's head with one output; final_norm is the
  // scorer's norm.
  DecisionHeadWeights decision;
  CompactHeadWeights compact_head;  // instead of `decision`, if the head is compact
  // Instead of `decision`, for a head that reads all questions of a request together.
  JointHeadWeights joint_head;

  // For an embedding model: the modules after the pooling, or for each token's state, in order.
  // LoadWeights only reads a projection in the model's own file (EncoderFields::token_width).
  std::vector<DenseWeights> embedding_dense;

  // The size of an embedding.
  int32_t embedding_size() const;
  // The width of the widest Dense module; 0: there is none.
  int32_t dense_width() const;
  // Writes the embedding of a token to out [hidden].
  void EmbeddingRow(int32_t token, float* out) const;
  size_t bytes() const;
  // The bytes of the matrices that the two functions below place, and of the largest of them.
  struct MatrixBytes {
    int64_t all = 0, largest = 0;
  };
  MatrixBytes matrix_bytes() const;
  // PackedWeight's functions of these names, for all matrices of the layers, and for `output`.
  Status Interleave(const std::vector<NumaNode>& nodes);
  Status CopyToNodes(const std::vector<NumaNode>& nodes);
};

// Chooses the compute type of a model whose files have `file_dtype`.
DType ChooseComputeType(ComputeChoice choice, DType file_dtype);
// The type of the KV cache.
DType ChooseKvType(KvCacheType choice, DType compute);

// Chooses the types of the weights.
WeightTypes ChooseWeightTypes(Quantization choice, DType compute, const ModelConfig& config,
                              const ModelFiles& files);

// Reads the tensors of a model into the layout of the kernels. Fails with kInvalidArgument, naming
// the tensor and both shapes, if a tensor is missing or its shape contradicts the config. All
// tensors are checked before the first one is read. An unused tensor causes a warning, unless it is
// known to be redundant. Pages of the files are released early: the peak of memory is the packed
// model and one matrix.
Result<ModelWeights> LoadWeights(const ModelFiles& files, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team, const LoadProgress& progress);
// Reads the weights from the files of a model directory.
Result<ModelWeights> LoadWeights(const std::string& model_dir, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team, const LoadProgress& progress);

// Adds the modules behind the pooling, in their order, in the compute type of `weights`. Fails as
// LoadDenseWeights does. REQUIRES: each reads what the one before it writes.
Status LoadDenseModules(const std::vector<DenseModule>& modules, ModelWeights* weights);

}  // namespace skein
