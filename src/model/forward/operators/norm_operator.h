#pragma once

#include <optional>
#include <vector>

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

struct NormSpec {
  std::string_view name;
  const std::vector<float>& weight;  // [hidden]
  const std::vector<float>& bias;    // [hidden]; empty without LayerNorm
  float* ForwardWorkspace::*x;       // rows of the batch
  bool replaces_x = false;           // whether the normed row is the new residual; LayerNorm alone
  // The layer whose KV blocks are zeroed where they begin among the rows of a ticket.
  std::optional<int32_t> zeroes_layer = {};
};

// h = norm(x), by chunk; with int8 weights also the int8 rows.
class NormOperator : public Operator {
 public:
  NormOperator(PassState& pass, const NormSpec& spec);

  std::string_view name() const override { return spec_.name; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // One row x [hidden] to `out`, a row of h.
  void NormRow(float* x, std::byte* out) const;

  PassState& pass_;
  const NormSpec spec_;
  std::optional<KvBlocks> zeroes_;
  OperatorRange range_;
};

}  // namespace skein
