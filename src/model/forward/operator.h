#pragma once

#include <cstdint>

namespace skein {

// The operators of a forward pass in the order they run:
//
//   kEmbed, then for each layer kAttnNorm .. kCollectX, then for each chunk of wanted outputs
//   kFinalNorm, kOutput
//
// Within a layer kAttnNorm, kQkvProj and kQuantizeAttn .. kDownProj run chunk by chunk of tokens,
// all of them for one chunk before the next; the others run whole. A layer has either kGate ..
// kSumExperts or kGateUpProj .. kDownProj: the other ones have no tickets.
//
// In the last layer only the tokens that an output is read of go on behind kFork, in the first
// places of q and x; where there is none, the pass ends there.
//
// Of an encoder, whose norms follow the additions, kAttnNorm is that of the embeddings or of the
// layer before, and a norm replaces x too; there is no rotation, no gate, and no output matrix.
enum class Operator : uint8_t {
  kEmbed,         // x = embedding rows
  kAttnNorm,      // h = norm(x); KV blocks that begin here are zeroed
  kQkvProj,       // h · Wqkv^T + b; q/k norm, rotation; q rounded, k and v stored in the KV cache
  kCollectQkv,    // for comparisons (ChunkOutputs::kCollected): q and the rows' own keys and values
  kFork,          // rows that begin inside a parent's block take over its keys and values
  kGatherWanted,  // of the last layer: q and x of the tokens that go on, to the first places
  kAttention,     // attn = softmax(q · K^T) · V
  kQuantizeAttn,  // attn as int8, for int8 weights
  kOProj,         // x += attn · Wo^T + b
  kMlpNorm,       // h = norm(x)
  kGate,          // r = h · Wrouter^T; each token's experts and their weights
  kGatherExperts,  // in = h, a row for each token and expert, grouped by expert
  kExpertGateUp,   // act = silu(in · Wgate^T) * (in · Wup^T), of each expert its rows
  kExpertDown,     // out = act · Wdown^T
  kSumExperts,     // x += weight * out, of each token its experts in order
  kGateUpProj,     // act = silu(h · Wgate^T) * (h · Wup^T)
  kQuantizeAct,    // act as int8, for int8 weights
  kDownProj,       // x += act · Wdown^T + b
  kCollectX,       // for comparisons: x
  kFinalNorm,      // h = norm(x), what the chunk needs only; pools embeddings
  kOutput,         // logits = h · Wout^T, all or some rows of Wout; classes = h · Whead^T + b
};

// Where a forward pass stands: the tickets of `op` on chunk `row_chunk` before `next_ticket` are
// done, and so is everything before them.
struct OperatorCursor {
  int32_t layer = 0;  // for kFinalNorm and kOutput: the chunk of outputs
  Operator op = Operator::kEmbed;
  int32_t row_chunk = 0;  // of the batch's tokens; of those that go on
  int32_t next_ticket = 0;

  friend bool operator==(const OperatorCursor&, const OperatorCursor&) = default;
};

}  // namespace skein
