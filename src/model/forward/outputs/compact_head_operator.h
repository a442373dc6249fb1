#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/kv_layout.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"
#include "model/weights/compact_head_weights.h"

namespace skein {

// The steps of a compact head (model/weights/compact_head_weights.h), in their order. The steps
// from kAttnNorm to kDown belong to a layer. A pointer head has only kRead, kSummary, kOption and
// kScore.
enum class CompactStage : uint8_t {
  kRead,  // the normed states of markers and summary, rounded to bf16 as in training
  kIn,
  kInputNorm,
  kAttnNorm,
  kQkv,
  kStore,
  kAttend,
  kOut,
  kMlpNorm,
  kUp,
  kDown,
  kFinalNorm,
  kSummary,
  kOption,
  kScore,
};

// One step over a chunk of questions. Each question has the rows type, options, summary:
//
//   | type, option 0, option 1, ..., summary | type, option 0, ... | ...
//
// No bit of a question depends on the others.
class CompactHeadOperator : public Operator {
 public:
  // `layer`: the layer of the head, for the stages of a layer.
  CompactHeadOperator(PassState& pass, CompactStage stage, int32_t layer = 0);

  std::string_view name() const override;
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // One question's rows [first, first + count), and the first of its KV blocks.
  struct Question {
    int32_t index = 0;  // index into ForwardBatch::decided_rows
    int32_t first = 0, count = 0, first_block = 0;
  };
  // A product with all rows.
  struct Product {
    const BiasedWeight* weight = nullptr;
    const float* in = nullptr;
    float* out = nullptr;
    int64_t ldo = 0;
    bool adds = false;
    Activation activation = Activation::kNone;
  };

  Product ProductOf() const;
  void RunProduct(int32_t ticket);
  void RunRow(const Question& question, int32_t slot);
  void RunNorm(const LayerNormWeights& norm, const float* from, float* to) const;
  void Read(const Question& question, int32_t slot);
  void InputNorm(const Question& question, int32_t slot);
  void Store(const Question& question, int32_t slot);
  void Attend(const Question& question, int32_t head);
  void Score(const Question& question);

  int32_t width() const { return pass_.config().decision.compact_width; }
  const CompactHeadWeights& weights() const { return pass_.weights().compact_head; }
  const CompactHeadLayer& layer() const { return weights().layers[static_cast<size_t>(layer_)]; }
  float* Row(float* matrix, int32_t row, int64_t columns) const { return matrix + row * columns; }

  PassState& pass_;
  const CompactStage stage_;
  const int32_t layer_;
  const KvLayout kv_layout_;
  ProductCutter cutter_;
  ProductCut cut_;
  std::vector<Question> questions_;
  std::vector<int32_t> question_of_row_;
  std::vector<int32_t> block_ids_;  // 0, 1, 2, ...
};

}  // namespace skein
