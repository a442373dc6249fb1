#pragma once

#include <optional>
#include <vector>

#include "model/forward/kv_blocks.h"
#include "model/forward/operators/row_operator.h"

namespace skein {

struct NormSpec {
  std::string_view name;
  const std::vector<float>& weight;  // [hidden]; empty: h = x
  const std::vector<float>& bias;    // [hidden]; empty for RMSNorm
  float* ForwardWorkspace::*x;       // rows of the batch
  bool replaces_x = false;           // LayerNorm only: the normed row becomes the new residual
  float eps = 0;                     // for LayerNorm
  // A layer whose new KV blocks are zeroed, if they begin among the rows of a ticket.
  std::optional<int32_t> zeroes_layer = {};
  // [types, hidden]: the row for the type of question is added to the normed row. Null: nothing is
  // added. With an embedding, all tokens are active.
  const std::vector<float>* type_embedding = nullptr;
};

// h = norm(x), by chunk. With int8 weights, the int8 rows are written, too.
class NormOperator : public RowOperator {
 public:
  NormOperator(PassState& pass, const NormSpec& spec);

  std::string_view name() const override { return spec_.name; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  // Writes the norm of one row x [hidden] to `out`, a row of h.
  void NormRow(float* x, int32_t active, std::byte* out) const;
  // Adds the embedding of the question's type to the normed row of a token.
  void AddType(int32_t token, float* x) const;

  const NormSpec spec_;
  std::optional<KvBlocks> zeroes_;
};

}  // namespace skein
