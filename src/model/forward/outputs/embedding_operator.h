#pragma once

#include <atomic>
#include <vector>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// How the rows of a chunk are pooled into embeddings. With pooling by one token there is one stage,
// kToken. With pooling by the mean there are two, kNorm and kMean. Classes that are read from the
// mean have these two, as well.
enum class EmbeddingStage : uint8_t {
  kToken,  // the norm of one token; an embedding goes through the Dense modules
  kNorm,   // the norms of all tokens, in place
  kMean,   // their mean, some columns in a ticket; then the Dense modules, or h of the classes
};

// One stage of the pooling of a chunk of rows.
class EmbeddingOperator : public Operator {
 public:
  // kind: kEmbedding or kClasses; with kToken, kStates too.
  EmbeddingOperator(PassState& pass, EmbeddingStage stage, OutputKind kind);

  std::string_view name() const override;
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  int32_t BeginNorm();
  int32_t BeginMean();
  void Norm(const RowSpan& span);
  void Mean(int32_t i, int32_t begin, int32_t end);
  // Output i, all columns of which are pooled.
  void Pooled(int32_t i);
  // An embedding goes through the model's Dense modules.
  void Dense(int32_t i);
  int32_t MeanTicketsPerRow() const;
  int32_t RowOf(int32_t i) const;

  PassState& pass_;
  const EmbeddingStage stage_;
  const OutputKind kind_;
  OperatorRange range_;
  std::vector<RowSpan> norm_spans_;  // a ticket of kNorm each
  // For each output: tickets of kMean that have not summed their columns. The last one to end puts
  // the output through the Dense modules, which need all columns.
  std::vector<std::atomic<int32_t>> mean_left_;  // [max_logit_rows]
};

}  // namespace skein
