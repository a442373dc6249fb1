#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "kernels/row_tiles.h"
#include "model/forward/expert_routes.h"
#include "model/forward/forward_batch.h"
#include "model/forward/forward_cut.h"
#include "model/forward/forward_rope.h"
#include "model/forward/forward_workspace.h"
#include "model/forward/operator.h"
#include "model/pooling.h"
#include "model/weights/weights.h"

namespace skein {

// What forward passes of one model share. Everything is borrowed and outlives the passes.
struct ForwardContext {
  const ModelWeights* weights = nullptr;
  const Kernels* kernels = nullptr;
  const RopeAngles* rope = nullptr;  // null for an encoder
  KvLayout kv_layout;                // its dtype is the weights' compute type
  std::byte* kv = nullptr;           // [kv_layout.total_bytes()]
  ThreadTeam* team = nullptr;
  Pooling pooling = Pooling::kLast;  // of embeddings
  // Rows that share leading blocks come together in one call, which reads those once
  // (AttentionCall); else each has its own. The same bits.
  bool share_attention = true;
};

enum class ForwardStatus {
  kStopped,  // `stop` read true; Run goes on where it left off
  kLogits,   // logits() holds the next rows; Run goes on behind them
  kOutputs,  // output() holds the next outputs of another kind; Run goes on behind them
  kDone,
};

// Where a pass can stop.
enum class StopAt : uint8_t {
  kTicket,    // between any two tickets
  kOperator,  // between two operators, or chunks of one
  kLayer,     // before a layer or a chunk of outputs
  kEnd,       // nowhere
};

enum class OutputKind : uint8_t { kLogits, kLabels, kEmbedding, kClasses };

// Outputs of one kind that exist at a time: [first, first + count) of the batch's list of them.
struct OutputChunk {
  OutputKind kind = OutputKind::kLogits;
  int32_t first = 0;
  int32_t count = 0;
};

// One forward pass over a batch: a list of operators (model/forward/operator.h) walked by a cursor.
// It can stop between any two tickets; the activations stay, and going on changes no bit. Nothing
// is allocated after the first use. One thread; its team does the work.
//
//   Begin -> Run -> kLogits or kOutputs -> Run -> ... -> kDone -> Begin -> ...
//             |  ^
//             v  |
//           kStopped
class ForwardPass {
 public:
  ForwardPass(const ForwardContext& context, const ForwardLimits& limits);

  // Sets up the pass over batch(), which the caller has filled; runs no operator. REQUIRES: 1 to
  // max_tokens tokens, ids in [0, vocab), positions within the rope table, blocks in the layout, at
  // most max_own_blocks blocks beyond the rows' tables; the model has the heads that are asked for;
  // rows pooled by kMean or kCls begin at position 0.
  void Begin();
  ForwardBatch& batch() { return batch_; }

  // Runs operators until `stop` (may be null) reads true at a boundary, until outputs are ready, or
  // to the end.
  ForwardStatus Run(const std::atomic<bool>* stop, StopAt stop_at = StopAt::kTicket);

  // After kLogits: rows [first_logit_row(), first_logit_row() + num_logit_rows()) of
  // batch().logit_tokens; logits(i) [vocab] is that of the i-th of them.
  int32_t first_logit_row() const { return chunk().first; }
  int32_t num_logit_rows() const { return chunk().count; }
  const float* logits(int32_t i) const { return output(i); }

  // After kLogits or kOutputs: what output() holds. output(i) is the i-th of the chunk: logits
  // [vocab], the same with nothing valid but the labels', an embedding [embedding_size()] or
  // classes [num_classes].
  const OutputChunk& chunk() const { return chunks_[cursor_.layer]; }
  const float* output(int32_t i) const;

  OperatorCursor cursor() const { return cursor_; }
  // After kStopped: how many tickets the operator at the cursor has.
  int32_t NumTickets() const;
  size_t activation_bytes() const { return workspace_.memory.size(); }

 private:
  // Consecutive tokens of one row; of attention, places (TokenAt).
  struct Piece {
    int32_t row = 0;
    int32_t first_token = 0;
    int32_t num_tokens = 0;
  };
  // Pieces [first_piece, first_piece + num_pieces) of tile_pieces_, at most AttentionTileTokens
  // places.
  struct Tile {
    int32_t first_piece = 0;
    int32_t num_pieces = 0;
    int32_t num_tokens = 0;
  };

  void CheckRow(const ForwardRow& row) const;
  // The row's block table: its own blocks have ids from kv_layout.num_blocks on.
  std::span<const int32_t> Table(int32_t row) const;
  void MakeTables();
  void CutRows();
  // Which tokens the last layer is computed of to its end (forward_wanted.cc).
  void FindWanted();
  void KeepWanted();
  int32_t NumGatherTickets() const;
  void GatherWanted(int32_t ticket);
  // Places are rows of q, x and what is made of them: one for each token that the operators at hand
  // go over, in the order of tokens.
  int32_t num_places() const {
    return only_wanted_ ? static_cast<int32_t>(wanted_.size()) : batch_.num_tokens();
  }
  int32_t TokenAt(int32_t place) const { return only_wanted_ ? wanted_[place] : place; }
  // The place of the first such token from `token` on.
  int32_t PlaceOf(int32_t token) const;
  void BeginRowChunk();
  void EndRowChunk(Operator first);
  // A block of the layer at hand, all heads of it; the row's own ones lie at `own`.
  std::byte* KvBlock(int32_t block, std::byte* own) const;
  ProductShape Shape(int32_t m, int32_t n, int32_t k, DType dtype) const;
  void CutTiles();
  // Whether the attention of both rows starts with a step over the same blocks.
  bool ShareFirstStep(int32_t a, int32_t b) const;
  int32_t group() const { return config().num_heads / config().num_kv_heads; }
  // Tokens of one tile, at most, that are of several rows.
  int32_t JoinedTokens() const;
  void CutOutputs();
  void BeginChunk();
  void CutLabels();
  bool AtTail() const { return cursor_.op >= Operator::kFinalNorm; }
  bool Finished() const;
  // Whether the cursor stands where a pass that stops at `stop_at`, but not at tickets, may stop.
  bool AtBoundary(StopAt stop_at) const;
  void Advance();
  void RunTicket(int32_t ticket);

  void Embed(int32_t ticket);
  void EmbedEncoder(int32_t ticket);
  // Rows of x [max_tokens, hidden] to h.
  void Norm(int32_t ticket, const std::vector<float>& weight, const std::vector<float>& bias,
            float* x);
  // One row x [hidden] to `out`, a row of h. An encoder's residual is the normed row: it replaces
  // x.
  void NormRow(const std::vector<float>& weight, const std::vector<float>& bias, float* x,
               std::byte* out);
  // A matrix in the compute type that is to be multiplied.
  struct Factor {
    const std::byte* rows;
    int64_t width;
    bool tiles = false;  // kernels/row_tiles.h
  };
  void Product(int32_t ticket, const ProductCut& cut, const Factor& a, int32_t m,
               const PackedWeight& w, const std::vector<float>& bias, bool add_to_out, float* out,
               int64_t ldo);
  // A factor's rows from `row` on as `w` takes them: those, or what Quantize has left of them.
  struct GemmRows {
    const void* a;
    int64_t lda;
    const float* scales;
    bool tiles;
  };
  GemmRows RowsFor(const PackedWeight& w, const Factor& a, int64_t row) const;
  // Where h, q, attn or act has an element, and the distance of the pieces of its rows.
  std::byte* At(std::byte* matrix, int64_t row, int64_t column, int64_t width) const {
    const int64_t index = row_tiles_ ? RowTileIndex(row, column, width) : row * width + column;
    return matrix + index * static_cast<int64_t>(t_);
  }
  int64_t piece_stride() const { return row_tiles_ ? kRowTileElements : kRowPiece; }
  int32_t act_width() const;
  bool int8() const { return context_.weights->matrix_dtype == DType::kInt8; }
  // Row i of the chunk, of n elements.
  void Quantize(int64_t i, const std::byte* row, int32_t n);
  void QuantizeTokens(int32_t ticket, const std::byte* a, int64_t lda, int32_t n);
  void OProj(int32_t ticket);
  void DownProj(int32_t ticket);
  // Norms the ticket's tokens and zeroes the KV blocks that begin among them.
  void AttnNorm(int32_t ticket);
  void ZeroBlocks(int32_t first_token, int32_t end_token);
  int32_t Position(const Piece& piece, int32_t token) const;
  // The block that a piece's keys and values go to, its first head.
  std::byte* StoreBlock(const Piece& piece) const;
  void QkvProj(int32_t ticket);
  // Rows [row_begin, row_end) of the chunk at columns [col_begin, col_end) of q, k and v: some
  // whole heads.
  struct QkvPart {
    int32_t row_begin, row_end, col_begin, col_end;
  };
  // Those in x, with row stride ld, on their way to where they belong.
  void StoreHeads(const QkvPart& part, const float* x, int64_t ld);
  void StoreTokenHeads(const Piece& piece, int32_t token, const QkvPart& part, const float* x);
  size_t CollectedQBytes() const;
  int32_t NumCollectTickets() const;
  void CollectQkv(int32_t ticket);
  void CollectX(int32_t ticket);
  void Fork(int32_t ticket);
  void Attention(int32_t ticket);
  void GateUp(int32_t ticket);
  void Up(int32_t ticket);
  // A mixture of experts (forward_moe.cc). Between kGate and kGatherExperts slots are handed out
  // and the products cut.
  void GroupExperts();
  int32_t NumExpertTickets() const;
  void RunExpertTicket(int32_t ticket);
  void Gate(int32_t ticket);
  void GatherExperts(int32_t ticket);
  void ExpertGateUp(int32_t ticket);
  void ExpertDown(int32_t ticket);
  void SumExperts(int32_t ticket);
  int32_t NumFinalNormTickets() const;
  void FinalNorm(int32_t ticket);
  void NormOutput(int32_t i);
  // The last layer's output at a token of the batch, normalized, to `out` [hidden] of `dtype`.
  void FinalNormRow(int32_t token, void* out, DType dtype) const;
  void HeadDense(int32_t begin, int32_t end);
  // Of a chunk of embeddings with mean pooling: kFinalNorm normalizes the rows' tokens, kOutput
  // sums them, some columns in a ticket; a row's last ticket to end puts it through the Dense
  // modules. With other pooling kFinalNorm does all.
  bool PoolsMean() const {
    return chunk().kind == OutputKind::kEmbedding && context_.pooling == Pooling::kMean;
  }
  void CutMean();
  int32_t MeanTicketsPerRow() const;
  void SumMean(int32_t ticket);
  // Output i of a chunk of embeddings, pooled, goes through the model's Dense modules.
  void EmbeddingDense(int32_t i);
  int32_t LastToken(int32_t row) const;
  // Of which a row's embedding or classes are read.
  int32_t EmbeddedToken(int32_t row) const;
  int32_t ClassifiedToken(int32_t row) const;
  int32_t NumOutputTickets() const;
  void Output(int32_t ticket);
  void Labels(int32_t ticket);
  float* MutableOutput(int32_t i) { return workspace_.logits + i * workspace_.output_width; }

  const LayerWeights& layer() const { return context_.weights->layers[cursor_.layer]; }
  const ModelConfig& config() const { return context_.weights->config; }
  int32_t q_width() const { return config().num_heads * config().head_dim; }
  int32_t qkv_width() const { return q_width() + 2 * config().num_kv_heads * config().head_dim; }

  const ForwardContext context_;
  const ForwardLimits limits_;
  const float scale_;  // of attention scores
  const size_t t_;     // bytes of the compute type
  // Whether h, q, attn and act lie in tiles, so that products need not pack their rows.
  const bool row_tiles_;
  ForwardWorkspace workspace_;
  ForwardBatch batch_;
  OperatorCursor cursor_;
  bool outputs_taken_ = false;  // those of chunk cursor_.layer have been handed out

  // The batch, cut for this pass.
  std::vector<Piece> blocks_;   // tokens of one KV block and one chunk, ascending
  std::vector<int32_t> forks_;  // for kFork: rows
  // Tables of the rows with blocks of the pass's own; of each row the first of its ids in there,
  // or -1 where its own table covers it.
  std::vector<int32_t> own_tables_;
  std::vector<int32_t> own_table_begin_;
  int32_t num_own_blocks_ = 0;
  std::vector<int32_t> wanted_;  // tokens that an output is read of, ascending
  bool only_wanted_ = false;     // those alone go on: the last layer's keys and values are stored
  // The chunk at hand.
  int32_t chunk_begin_ = 0;  // its first place
  int32_t chunk_tokens_ = 0;
  // For kAttention: tokens of one row, or of rows that share a prefix.
  std::vector<Tile> tiles_;
  std::vector<Piece> tile_pieces_;
  std::vector<int32_t> sorted_rows_;  // of CutTiles: those with the same leading blocks adjacent
  ExpertRoutes expert_routes_;
  // Of one expert; the ends count the tickets of all experts up to it.
  struct ExpertCuts {
    ProductCut gate_up, down;
    int32_t gate_up_end = 0, down_end = 0;
  };
  int32_t ExpertOf(int32_t ExpertCuts::*end, int32_t* ticket) const;
  std::vector<ExpertCuts> expert_cuts_;  // [num_experts]
  ProductCut qkv_cut_, o_cut_, gate_up_cut_, down_cut_, output_cut_;
  std::vector<OutputChunk> chunks_;
  // For kOutput of labels: outputs of the chunk that want the same labels, and some of the panels
  // of the output matrix in which those lie.
  struct LabelPiece {
    int32_t first_output = 0;
    int32_t num_outputs = 0;
    int32_t first_panel = 0;  // in label_panels_
    int32_t num_panels = 0;
  };
  std::vector<Piece> mean_pieces_;  // for kFinalNorm of PoolsMean
  // For its kOutput: of each output of the chunk, tickets that have not summed their columns.
  std::vector<std::atomic<int32_t>> mean_left_;  // [max_logit_rows]
  std::vector<LabelPiece> label_pieces_;
  std::vector<int32_t> label_panels_;  // ascending and distinct for equal outputs
};

}  // namespace skein
