#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/kv_layout.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"
#include "model/weights/joint_head_weights.h"

namespace skein {

// The rows over which an operator of a joint head goes, all of one row of the batch.
enum class JointRows : uint8_t { kLast, kTokens, kOptions, kQuestions };

// A row of the batch whose questions a joint head answers. Spans are tokens of the row.
class JointTask {
 public:
  struct Span {
    int32_t begin = 0, end = 0;
  };

  // The task of an entry of ForwardBatch::decided_rows.
  JointTask(const PassState& pass, int32_t index);

  int32_t Count(JointRows rows) const;
  int32_t first_token() const { return row_->first_token; }  // index into the batch's tokens
  Span TextOf(int32_t question) const;
  Span OptionAt(int32_t option) const;
  int32_t TypeOf(int32_t question) const;
  int32_t NumOptionsOf(int32_t question) const;
  int32_t QuestionOf(int32_t option) const;  // the question to which an option belongs
  int32_t FirstOptionOf(int32_t question) const;

 private:
  bool plain() const { return decided_->schema.types.empty(); }  // one question of single tokens

  const PassState* pass_;
  const DecidedRow* decided_;
  const ForwardRow* row_;
};

// Calls a function for each row. Threads call it at the same time for different rows.
class JointRowOperator : public Operator {
 public:
  using RowFn = std::function<void(const JointTask& task, int32_t row)>;

  JointRowOperator(PassState& pass, std::string_view name, JointRows rows, RowFn fn)
      : pass_(pass), name_(name), rows_(rows), fn_(std::move(fn)) {}

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const std::string_view name_;
  const JointRows rows_;
  const RowFn fn_;
  int32_t index_ = 0;
};

// out = activation(weight · in + bias), or out += the sum, for each row.
struct JointProduct {
  JointRows rows = JointRows::kTokens;
  const PackedWeight* weight = nullptr;
  const float* bias = nullptr;  // null: none
  const float* in = nullptr;    // [rows, weight->k()]; null: the states of the row's tokens
  float* out = nullptr;         // [rows, weight->n()]
  bool adds = false;
  Activation activation = Activation::kNone;
};

class JointProductOperator : public Operator {
 public:
  JointProductOperator(PassState& pass, std::string_view name, const JointProduct& product);

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const std::string_view name_;
  const JointProduct product_;
  ProductCutter cutter_;
  ProductCut cut_;
  const float* in_ = nullptr;
  int32_t num_rows_ = 0;
};

// The attention of rows to the keys and values in JointHeadRows::kv, and how these come there.
struct JointAttention {
  JointRows rows = JointRows::kOptions;  // that attend
  JointRows keys = JointRows::kTokens;
  const float* q = nullptr;  // [rows, q_stride], the first `width` elements of each
  int64_t q_stride = 0;
  float* out = nullptr;  // [rows, width]
};

class JointAttentionOperator : public Operator {
 public:
  JointAttentionOperator(PassState& pass, std::string_view name, const JointAttention& attention);

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const std::string_view name_;
  const JointAttention attention_;
  const KvLayout layout_;
  std::vector<int32_t> block_ids_;  // 0, 1, 2, ...
  int32_t num_rows_ = 0, num_keys_ = 0, num_tiles_ = 0;
};

}  // namespace skein
