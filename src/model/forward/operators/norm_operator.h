#pragma once

#include <optional>
#include <vector>

#include "model/forward/kv_blocks.h"
#include "model/forward/operators/row_operator.h"

namespace skein {

struct NormSpec {
  std::string_view name;
  const std::vector<float>& weight;  // [hidden]; empty: h = x
  const std::vector<float>& bias;    // [hidden]; empty without LayerNorm
  float* ForwardWorkspace::*x;       // rows of the batch
  bool replaces_x = false;           // whether the normed row is the new residual; LayerNorm alone
  float eps = 0;                     // of LayerNorm
  // The layer whose KV blocks are zeroed where they begin among the rows of a ticket.
  std::optional<int32_t> zeroes_layer = {};
  // [types, hidden]: what the normed row gets added, by its row's type of question. Null: nothing.
  // All tokens are active then.
  const std::vector<float>* type_embedding = nullptr;
};

// h = norm(x), by chunk; with int8 weights also the int8 rows.
class NormOperator : public RowOperator {
 public:
  NormOperator(PassState& pass, const NormSpec& spec);

  std::string_view name() const override { return spec_.name; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  // One row x [hidden] to `out`, a row of h.
  void NormRow(float* x, int32_t active, std::byte* out) const;
  // Adds the embedding of its type to the normed row of a token.
  void AddType(int32_t token, float* x) const;

  const NormSpec spec_;
  std::optional<KvBlocks> zeroes_;
};

}  // namespace skein
