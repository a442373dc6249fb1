#pragma once

#include <atomic>
#include <vector>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// The stages in which the rows of a chunk are pooled into embeddings. Pooling by one token has one
// stage, kToken. Pooling by the mean has two, kNorm and kMean. Classes that are read from the mean
// also have these two.
enum class EmbeddingStage : uint8_t {
  kToken,  // the norm of one token; for an embedding or a token's vector, then the Dense modules
  kNorm,   // the norms of all tokens, in place
  kMean,   // the mean of all, some columns in a ticket; then the Dense modules, or h of the classes
};

// One stage of the pooling of a chunk of rows.
class EmbeddingOperator : public Operator {
 public:
  // kind: kEmbedding or kClasses; with kToken also kStates.
  EmbeddingOperator(PassState& pass, EmbeddingStage stage, OutputKind kind);

  std::string_view name() const override;
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  int32_t BeginNorm();
  int32_t BeginMean();
  void Norm(const RowSpan& span);
  void Mean(int32_t i, int32_t begin, int32_t end);
  // Finishes output i, of which all columns are pooled.
  void Pooled(int32_t i);
  // Applies the model's Dense modules to an embedding.
  void Dense(int32_t i);
  int32_t MeanTicketsPerRow() const;
  int32_t RowOf(int32_t i) const;

  PassState& pass_;
  const EmbeddingStage stage_;
  const OutputKind kind_;
  OperatorRange range_;
  std::vector<RowSpan> norm_spans_;  // a ticket of kNorm for each
  // For each output: the number of kMean tickets that have not summed their columns. The last
  // ticket applies the Dense modules to the output, since they need all columns.
  std::vector<std::atomic<int32_t>> mean_left_;  // [max_logit_rows]
};

}  // namespace skein
