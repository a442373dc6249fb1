#include "model/forward/outputs/labels_operator.h"

#include <algorithm>

namespace skein {
namespace {

constexpr int32_t kPanelsPerTicket = 32;

}  // namespace

int32_t LabelsOperator::Begin(OperatorRange range) {
  tickets_.clear();
  panels_.clear();
  const auto labels = [&](int32_t i) { return pass_.batch.label_outputs[range.first + i].labels; };
  for (int32_t begin = 0, end = 0; begin < range.count; begin = end) {
    while (end < range.count && std::ranges::equal(labels(begin), labels(end))) ++end;
    AddTickets(begin, end - begin, labels(begin));
  }
  return static_cast<int32_t>(tickets_.size());
}

void LabelsOperator::AddTickets(int32_t first_output, int32_t num_outputs,
                                std::span<const int32_t> labels) {
  const auto begin = static_cast<int32_t>(panels_.size());
  for (const int32_t label : labels) panels_.push_back(label / kPanelCols);
  const auto panels = std::span(panels_).subspan(begin);
  std::ranges::sort(panels);
  panels_.resize(panels_.size() - std::ranges::unique(panels).size());
  const auto end = static_cast<int32_t>(panels_.size());
  for (int32_t first = begin; first < end; first += kPanelsPerTicket) {
    tickets_.push_back({first_output, num_outputs, first, std::min(kPanelsPerTicket, end - first)});
  }
}

void LabelsOperator::Run(int32_t index) {
  const Ticket& ticket = tickets_[index];
  const PackedWeight& w = pass_.weights().output;
  GemmCall call = pass_.CallOn(w, {&ForwardWorkspace::logit_h, pass_.config().hidden_size}, 0,
                               ticket.first_output);
  call.m = ticket.num_outputs;
  call.out = pass_.Output(ticket.first_output);
  call.ldo = static_cast<int64_t>(pass_.workspace.output_width);
  for (int32_t i = ticket.first_panel; i < ticket.first_panel + ticket.num_panels; ++i) {
    call.n_begin = panels_[i] * kPanelCols;
    call.n_end = std::min(call.n_begin + kPanelCols, w.n());
    pass_.kernels().Gemm(call);
    pass_.FinishLogits(call);
  }
}

}  // namespace skein
