#pragma once

#include <span>
#include <vector>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// A few logits of each output, from the panels of the output matrix that hold the labels' rows.
// Adjacent outputs with the same labels share their products.
class LabelsOperator : public Operator {
 public:
  explicit LabelsOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "labels"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Outputs of the chunk with the same labels, and some of the panels with these labels.
  struct Ticket {
    int32_t first_output = 0;
    int32_t num_outputs = 0;
    int32_t first_panel = 0;  // index in panels_
    int32_t num_panels = 0;
  };
  void AddTickets(int32_t first_output, int32_t num_outputs, std::span<const int32_t> labels);

  PassState& pass_;
  std::vector<Ticket> tickets_;
  std::vector<int32_t> panels_;  // ascending and distinct for outputs with equal labels
};

}  // namespace skein
