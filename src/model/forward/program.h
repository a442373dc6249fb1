#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/forward/layout.h"
#include "model/forward/operator.h"

namespace skein {

struct PassState;

struct OperatorStep {
  std::unique_ptr<Operator> op;
  bool by_chunk = false;
};

// Operators in the order in which they run. Adjacent operators by chunk form a group: all of them
// run for one chunk of rows before the next chunk (ForwardLimits::chunk_tokens).
class OperatorList {
 public:
  // Appends an operator that runs chunk by chunk.
  template <typename Op, typename... Args>
  void ByChunk(Args&&... args) {
    steps_.push_back({std::make_unique<Op>(std::forward<Args>(args)...), true});
  }
  // Appends an operator that runs once, over all rows.
  template <typename Op, typename... Args>
  void Whole(Args&&... args) {
    steps_.push_back({std::make_unique<Op>(std::forward<Args>(args)...), false});
  }

  int32_t size() const { return static_cast<int32_t>(steps_.size()); }
  const OperatorStep& operator[](int32_t i) const { return steps_[i]; }

 private:
  std::vector<OperatorStep> steps_;
};

// The operators of a forward pass. `input` runs once, then each layer's list in turn, then for each
// chunk of outputs the list of its kind. With ForwardLimits::outputs_alone, there are only outputs.
struct ForwardProgram {
  OperatorList input;
  std::vector<OperatorList> layers;  // [num_layers], or none
  std::array<OperatorList, kNumOutputKinds> outputs;

  const OperatorList& of(OutputKind kind) const { return outputs[static_cast<size_t>(kind)]; }
  OperatorList& of(OutputKind kind) { return outputs[static_cast<size_t>(kind)]; }
};

// Makes the program of the pass's model. `pass` outlives the program.
ForwardProgram MakeProgram(PassState& pass);

}  // namespace skein
