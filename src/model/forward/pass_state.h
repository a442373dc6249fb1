#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/kernels.h"
#include "model/forward/attention_tiles.h"
#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/expert_routes.h"
#include "model/forward/grouped_cut.h"
#include "model/forward/layout.h"
#include "model/forward/product_cut.h"
#include "model/forward/relative/distance_bias.h"
#include "model/forward/relative/relative_rows.h"
#include "model/forward/workspace.h"

namespace skein {

// A matrix of the workspace, in the compute type, whose rows are multiplied by weights.
struct Operand {
  std::byte* ForwardWorkspace::*matrix = nullptr;
  int64_t width = 0;
  bool of_batch = false;  // row 0 is the first active token; else the first of the operator's range
  bool tiles = false;     // kernels/row_tiles.h
  // The same rows as int8, for weights of int8 or of blocks; row 0 is the first of the range.
  QuantizedRows ForwardWorkspace::*int8_rows = &ForwardWorkspace::quantized;
};

// The state that the operators of one pass share: the batch, its layout and the activations.
struct PassState {
  PassState(const ForwardContext& forward_context, const ForwardLimits& forward_limits);
  PassState(const PassState&) = delete;
  PassState& operator=(const PassState&) = delete;

  const ModelWeights& weights() const { return *context.weights; }
  const ModelConfig& config() const { return context.weights->config; }
  const Kernels& kernels() const { return *context.kernels; }
  // Whether products take int8 rows.
  bool int8() const { return limits.int8; }
  int32_t q_width() const { return config().num_heads * config().head_dim; }
  int32_t qkv_width() const { return q_width() + 2 * config().num_kv_heads * config().head_dim; }
  // The width of a row of attn in a layer.
  int32_t attn_width(int32_t layer) const {
    return config().IsLinear(layer) ? config().decoder.linear.v_width() : q_width();
  }
  // The width of a row of act in a layer whose MLP has a gate.
  int32_t act_width(int32_t layer) const;

  // The shape of a product of [m, k] with weights [n, k], for a cutter. The caller sets m.
  ProductShape Shape(int32_t n, int32_t k, DType dtype) const;
  ProductCutter Cutter(const ProductShape& shape) const {
    return {shape, context.team->num_threads()};
  }
  // A product of `w` with the rows of `a`, from `row` on. For weights of int8 or of blocks, the
  // rows are those that Quantize wrote. The caller sets m, the columns and the output. `first`: the
  // first row of the operator's range.
  GemmCall CallOn(const PackedWeight& w, const Operand& a, int32_t first, int64_t row) const;
  // The normed rows of a chunk: [chunk, hidden].
  Operand NormedRows() const {
    return {&ForwardWorkspace::h, config().hidden_size, false, row_tiles};
  }
  // Whether rows of a batch can have an adapter.
  bool has_lora() const { return context.adapters != nullptr && !context.adapters->empty(); }
  // An adapter's change of a product for an active token. Null: the token has no adapter, or its
  // adapter does not change the product.
  const LoraPair* LoraOf(LoraProduct product, int32_t layer, int32_t active) const;
  // Adds the adapters' changes of a product to columns [n_begin, n_end) of rows [row, row + m) of
  // the operator's range: out += b · lora. Rows without an adapter stay as they are. Only m, the
  // columns and the f32 output of `call` are used.
  void AddLora(LoraProduct product, int32_t layer, int32_t first, int32_t row,
               const GemmCall& call) const;
  // Divides and caps the f32 output of a product with a decoder's output matrix.
  void FinishLogits(const GemmCall& call) const;
  // Rounds row i [n] of the operator's range to int8: with one scale, or with a scale for each
  // block if the weights have blocks.
  void Quantize(int64_t i, const std::byte* row, int32_t n) {
    Quantize(i, row, n, workspace.quantized);
  }
  void Quantize(int64_t i, const std::byte* row, int32_t n, const QuantizedRows& to);
  // Copies row i [n] that Quantize wrote to another row.
  void CopyQuantized(int64_t i, int32_t n, int64_t to_row, const QuantizedRows& to) const;

  // The address of an element of h, q, attn or act.
  std::byte* At(std::byte* matrix, int64_t row, int64_t column, int64_t width) const {
    const int64_t index = row_tiles ? RowTileIndex(row, column, width) : row * width + column;
    return matrix + index * static_cast<int64_t>(t);
  }
  // The distance between the pieces of a row of these matrices (kernels/row_tiles.h).
  int64_t piece_stride() const { return row_tiles ? kRowTileElements : kRowPiece; }
  // The terms of a key in RelativeAttention, by the table's rows.
  float* KeyTerms(int32_t head, int32_t token) const {
    return workspace.key_terms +
           (int64_t{head} * limits.max_tokens + token) * config().encoder.relative.num_rows();
  }
  // Output i of the present chunk.
  float* Output(int64_t i) { return workspace.logits + i * workspace.output_width; }

  const ForwardContext context;
  const ForwardLimits limits;
  const size_t t;  // bytes of an element of the compute type
  // Whether h, q, attn and act are in tiles, so that products need not pack their rows.
  const bool row_tiles;
  ForwardWorkspace workspace;
  ForwardBatch batch;
  BatchLayout layout;
  AttentionTiles tiles, local_tiles;                  // for global and for local layers
  std::unique_ptr<const RelativeRows> relative_rows;  // null: no RelativeAttention
  std::unique_ptr<const DistanceBias> distance_bias;  // null: no RelativeBias
  // For a mixture of experts: the routes and products of the present layer and chunk.
  ExpertRoutes expert_routes;
  GroupedCut expert_gate_up, expert_down;
};

}  // namespace skein
