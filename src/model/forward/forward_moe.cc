// The operators of ForwardPass that a mixture of experts has in place of an MLP.

#include <algorithm>
#include <cstring>

#include "model/forward/forward_pass.h"

namespace skein {

void ForwardPass::GroupExperts() {
  const ModelConfig& c = config();
  expert_routes_.Group(chunk_tokens_);
  const int threads = context_.team->num_threads();
  const DType dtype = context_.weights->dtype;
  int32_t gate_up = 0, down = 0;
  for (int32_t expert = 0; expert < c.num_experts; ++expert) {
    ExpertCuts& cuts = expert_cuts_[expert];
    if (const int32_t m = expert_routes_.num_slots(expert); m > 0) {
      ProductShape gate_up_shape = Shape(m, c.expert_padded(), c.hidden_size, dtype);
      gate_up_shape.swiglu = true;
      cuts.gate_up = CutProduct(gate_up_shape, threads);
      cuts.down = CutProduct(Shape(m, c.hidden_size, c.expert_size, dtype), threads);
      gate_up += cuts.gate_up.num_tickets();
      down += cuts.down.num_tickets();
    }
    cuts.gate_up_end = gate_up;
    cuts.down_end = down;
  }
}

int32_t ForwardPass::NumExpertTickets() const {
  if (layer().experts.empty()) return 0;
  switch (cursor_.op) {
    case Operator::kExpertGateUp:
      return expert_cuts_.back().gate_up_end;
    case Operator::kExpertDown:
      return expert_cuts_.back().down_end;
    default:
      return CeilDiv(chunk_tokens_, kTokensPerTicket);
  }
}

void ForwardPass::RunExpertTicket(int32_t ticket) {
  switch (cursor_.op) {
    case Operator::kGate:
      return Gate(ticket);
    case Operator::kGatherExperts:
      return GatherExperts(ticket);
    case Operator::kExpertGateUp:
      return ExpertGateUp(ticket);
    case Operator::kExpertDown:
      return ExpertDown(ticket);
    default:
      return SumExperts(ticket);
  }
}

void ForwardPass::Gate(int32_t ticket) {
  const ModelConfig& c = config();
  const size_t num_experts = c.num_experts;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  float* const logits = workspace_.router + begin * num_experts;
  context_.kernels->Gemm({
      .a = workspace_.h + size_t(begin) * c.hidden_size * t_,
      .lda = c.hidden_size,
      .m = end - begin,
      .w = &layer().router,
      .n_end = c.num_experts,
      .out = logits,
      .ldo = c.num_experts,
  });
  for (int32_t i = begin; i < end; ++i) {
    expert_routes_.Choose(i, workspace_.router + i * num_experts,
                          workspace_.router_exp + i * num_experts, *context_.kernels);
  }
}

void ForwardPass::GatherExperts(int32_t ticket) {
  const size_t row_bytes = config().hidden_size * t_;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  for (int32_t i = begin; i < end; ++i) {
    for (const ExpertRoutes::Route& route : expert_routes_.routes(i)) {
      std::memcpy(workspace_.expert_in + route.slot * row_bytes, workspace_.h + i * row_bytes,
                  row_bytes);
    }
  }
}

// The expert that a ticket of a product belongs to; the ticket becomes one of its own.
int32_t ForwardPass::ExpertOf(int32_t ExpertCuts::*end, int32_t* ticket) const {
  const auto found = std::ranges::upper_bound(expert_cuts_, *ticket, {}, end);
  if (found != expert_cuts_.begin()) *ticket -= (*std::prev(found)).*end;
  return static_cast<int32_t>(found - expert_cuts_.begin());
}

void ForwardPass::ExpertGateUp(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t expert = ExpertOf(&ExpertCuts::gate_up_end, &ticket);
  const ProductCut& cut = expert_cuts_[expert].gate_up;
  const int32_t row = cut.row_begin(ticket), col = cut.col_begin(ticket);
  const size_t slot = expert_routes_.first_slot(expert) + row;
  const int32_t padded = c.expert_padded();
  context_.kernels->Gemm({
      .a = workspace_.expert_in + slot * c.hidden_size * t_,
      .lda = c.hidden_size,
      .m = std::min(cut.rows, expert_routes_.num_slots(expert) - row),
      .w = &layer().experts[expert].gate_up,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, padded),
      .up_begin = padded,
      .out = workspace_.expert_act + slot * padded * t_,
      .ldo = padded,
      .out_dtype = context_.weights->dtype,
  });
}

void ForwardPass::ExpertDown(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t expert = ExpertOf(&ExpertCuts::down_end, &ticket);
  const ProductCut& cut = expert_cuts_[expert].down;
  const int32_t row = cut.row_begin(ticket), col = cut.col_begin(ticket);
  const size_t slot = expert_routes_.first_slot(expert) + row;
  context_.kernels->Gemm({
      .a = workspace_.expert_act + slot * c.expert_padded() * t_,
      .lda = c.expert_padded(),
      .m = std::min(cut.rows, expert_routes_.num_slots(expert) - row),
      .w = &layer().experts[expert].down,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, c.hidden_size),
      .out = workspace_.expert_out + slot * c.hidden_size,
      .ldo = c.hidden_size,
  });
}

void ForwardPass::SumExperts(int32_t ticket) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  for (int32_t i = begin; i < end; ++i) {
    float* const x = workspace_.x_out + (chunk_begin_ + i) * hidden;
    for (const ExpertRoutes::Route& route : expert_routes_.routes(i)) {
      const float* const out = workspace_.expert_out + route.slot * hidden;
      for (size_t d = 0; d < hidden; ++d) x[d] += route.weight * out[d];
    }
  }
}

}  // namespace skein
