#pragma once

#include <array>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Copies the outputs of a layer's chunks into one place: q and the rows' own keys and values, or
// the residual stream. Used with ChunkOutputs::kCollected, which exists for comparison.
class CollectOperator : public Operator {
 public:
  enum class What : uint8_t { kQkv, kResidual };

  CollectOperator(PassState& pass, What what) : pass_(pass), what_(what) {}

  std::string_view name() const override {
    return what_ == What::kQkv ? "collect_qkv" : "collect_residual";
  }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  struct Copy {
    const void* from = nullptr;
    void* to = nullptr;
    size_t bytes = 0;
    int32_t num_tickets() const;
  };

  PassState& pass_;
  const What what_;
  std::array<Copy, 2> copies_;
};

}  // namespace skein
