#include "model/forward/operators/experts_operator.h"

#include <algorithm>
#include <cstring>

namespace skein {
namespace {

// The rows of the slots.
Operand RowsOf(std::byte* ForwardWorkspace::*matrix, int64_t width) {
  return {.matrix = matrix, .width = width, .int8_rows = &ForwardWorkspace::expert_quantized};
}

}  // namespace

std::string_view ExpertsOperator::name() const {
  constexpr std::array<std::string_view, kExpertStages.size()> kNames = {
      "expert_route",    "expert_gather", "expert_gate_up",
      "expert_quantize", "expert_down",   "expert_sum"};
  return kNames[static_cast<size_t>(stage_)];
}

int32_t ExpertsOperator::Begin(OperatorRange range) {
  range_ = range;
  if (stage_ == ExpertStage::kGateUp) return pass_.expert_gate_up.num_tickets();
  if (stage_ == ExpertStage::kDown) return pass_.expert_down.num_tickets();
  if (stage_ == ExpertStage::kGather) Group();
  return CeilDiv(num_rows(), kTokensPerTicket);
}

void ExpertsOperator::Run(int32_t ticket) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, num_rows());
  switch (stage_) {
    case ExpertStage::kRoute:
      return Route(begin, end);
    case ExpertStage::kGather:
      return Gather(begin, end);
    case ExpertStage::kGateUp:
      return GateUp(pass_.expert_gate_up.Find(ticket));
    case ExpertStage::kQuantize:
      return Quantize(begin, end);
    case ExpertStage::kDown:
      return Down(pass_.expert_down.Find(ticket));
    case ExpertStage::kSum:
      return Sum(begin, end);
  }
}

void ExpertsOperator::Group() {
  const ModelConfig& c = pass_.config();
  pass_.expert_routes.Group(range_.count);
  const int threads = pass_.context.team->num_threads();
  for (int32_t expert = 0; expert < c.num_experts; ++expert) {
    const ExpertWeights& weights = layer_.experts[expert];
    ProductShape gate_up = pass_.Shape(c.expert_padded(), c.hidden_size, weights.gate_up.dtype());
    gate_up.swiglu = true;
    ProductShape down = pass_.Shape(c.hidden_size, c.expert_size, weights.down.dtype());
    const int32_t m = pass_.expert_routes.num_slots(expert);
    gate_up.m = down.m = m;
    pass_.expert_gate_up.Set(expert, m > 0 ? CutProduct(gate_up, threads) : ProductCut{});
    pass_.expert_down.Set(expert, m > 0 ? CutProduct(down, threads) : ProductCut{});
  }
}

void ExpertsOperator::Route(int32_t begin, int32_t end) {
  const ModelConfig& c = pass_.config();
  const size_t num_experts = c.num_experts;
  const ForwardWorkspace& w = pass_.workspace;
  GemmCall call =
      pass_.CallOn(layer_.router, {&ForwardWorkspace::h, c.hidden_size}, range_.first, begin);
  call.m = end - begin;
  call.n_end = c.num_experts;
  call.bias = layer_.router_bias.empty() ? nullptr : layer_.router_bias.data();
  call.out = w.expert_sums.router + begin * num_experts;
  call.ldo = c.num_experts;
  pass_.kernels().Gemm(call);
  float* const scratch = w.expert_sums.router + pass_.limits.chunk() * num_experts;
  for (int32_t i = begin; i < end; ++i) {
    pass_.expert_routes.Choose(i, w.expert_sums.router + i * num_experts, scratch + i * num_experts,
                               pass_.kernels());
  }
}

void ExpertsOperator::Gather(int32_t begin, int32_t end) {
  const int32_t hidden = pass_.config().hidden_size;
  const size_t row_bytes = hidden * pass_.t;
  const ForwardWorkspace& w = pass_.workspace;
  for (int32_t i = begin; i < end; ++i) {
    for (const ExpertRoutes::Route& route : pass_.expert_routes.routes(i)) {
      std::memcpy(w.expert_in + route.slot * row_bytes, w.h + i * row_bytes, row_bytes);
      if (pass_.int8()) pass_.CopyQuantized(i, hidden, route.slot, w.expert_quantized);
    }
  }
}

void ExpertsOperator::GateUp(const GroupedCut::Ticket& ticket) {
  const ModelConfig& c = pass_.config();
  const int32_t padded = c.expert_padded();
  const int64_t slot = pass_.expert_routes.first_slot(ticket.group) + ticket.row;
  const ExpertWeights& expert = layer_.experts[ticket.group];
  GemmCall call =
      pass_.CallOn(expert.gate_up, RowsOf(&ForwardWorkspace::expert_in, c.hidden_size), 0, slot);
  call.bias = expert.gate_up_bias.empty() ? nullptr : expert.gate_up_bias.data();
  call.activation = c.activation;
  call.m = std::min(ticket.cut->rows, pass_.expert_routes.num_slots(ticket.group) - ticket.row);
  call.n_begin = ticket.col;
  call.n_end = std::min(ticket.col + ticket.cut->cols, padded);
  call.up_begin = padded;
  call.out = pass_.workspace.expert_act + slot * padded * pass_.t;
  call.ldo = padded;
  call.out_dtype = pass_.weights().dtype;
  pass_.kernels().Gemm(call);
}

void ExpertsOperator::Quantize(int32_t begin, int32_t end) {
  const ModelConfig& c = pass_.config();
  const size_t row_bytes = c.expert_padded() * pass_.t;
  const ForwardWorkspace& w = pass_.workspace;
  for (int32_t slot = begin; slot < end; ++slot) {
    pass_.Quantize(slot, w.expert_act + slot * row_bytes, c.expert_size, w.expert_quantized);
  }
}

void ExpertsOperator::Down(const GroupedCut::Ticket& ticket) {
  const ModelConfig& c = pass_.config();
  const int64_t slot = pass_.expert_routes.first_slot(ticket.group) + ticket.row;
  const ExpertWeights& expert = layer_.experts[ticket.group];
  GemmCall call =
      pass_.CallOn(expert.down, RowsOf(&ForwardWorkspace::expert_act, c.expert_padded()), 0, slot);
  call.bias = expert.down_bias.empty() ? nullptr : expert.down_bias.data();
  call.m = std::min(ticket.cut->rows, pass_.expert_routes.num_slots(ticket.group) - ticket.row);
  call.n_begin = ticket.col;
  call.n_end = std::min(ticket.col + ticket.cut->cols, c.hidden_size);
  call.out = pass_.workspace.expert_sums.out + slot * c.hidden_size;
  call.ldo = c.hidden_size;
  pass_.kernels().Gemm(call);
}

void ExpertsOperator::Sum(int32_t begin, int32_t end) {
  const size_t hidden = pass_.config().hidden_size;
  for (int32_t i = begin; i < end; ++i) {
    float* const x = pass_.workspace.x_out + (range_.first + i) * hidden;
    for (const ExpertRoutes::Route& route : pass_.expert_routes.routes(i)) {
      const float* const out = pass_.workspace.expert_sums.out + route.slot * hidden;
      for (size_t d = 0; d < hidden; ++d) x[d] += route.weight * out[d];
    }
  }
}

}  // namespace skein
