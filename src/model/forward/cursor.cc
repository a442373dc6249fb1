#include "model/forward/cursor.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

OperatorCursor::OperatorCursor(const ForwardProgram& program, int32_t chunk_tokens)
    : program_(program), chunk_tokens_(chunk_tokens) {
  SKEIN_CHECK(chunk_tokens >= 1 && program.layers.empty() == (program.input.size() == 0));
}

void OperatorCursor::Begin(std::span<const OutputChunk> outputs, int32_t num_active) {
  outputs_ = outputs;
  position_ = {};
  SetRange(num_active);
}

void OperatorCursor::BeginOutputs(std::span<const OutputChunk> outputs) {
  outputs_ = outputs;
  position_ = {.part = CursorPosition::Part::kOutputs};
  if (!done()) SetRange(0);
}

bool OperatorCursor::done() const {
  return in_outputs() && position_.index == static_cast<int32_t>(outputs_.size());
}

bool OperatorCursor::AtBoundary(StopAt stop_at) const {
  if (stop_at == StopAt::kOperator) return true;
  return stop_at == StopAt::kLayer && AtListBegin() &&
         position_.part != CursorPosition::Part::kInput;
}

void OperatorCursor::Next(int32_t num_active) {
  position_.next_ticket = 0;
  if (EndsGroup()) {
    const bool last_chunk = range_.first + range_.count == num_active;
    position_.row_chunk = last_chunk ? 0 : position_.row_chunk + 1;
    if (!last_chunk) {
      while (position_.op > 0 && list()[position_.op - 1].by_chunk) --position_.op;
      return SetRange(num_active);
    }
  }
  if (++position_.op == list().size()) NextList();
  if (!done()) SetRange(num_active);
}

const OperatorList& OperatorCursor::list() const {
  switch (position_.part) {
    case CursorPosition::Part::kInput:
      return program_.input;
    case CursorPosition::Part::kLayers:
      return program_.layers[position_.index];
    case CursorPosition::Part::kOutputs:
      break;
  }
  return program_.of(outputs_[position_.index].kind);
}

bool OperatorCursor::EndsGroup() const {
  const int32_t next = position_.op + 1;
  return list()[position_.op].by_chunk && (next == list().size() || !list()[next].by_chunk);
}

void OperatorCursor::NextList() {
  position_.op = 0;
  if (position_.part == CursorPosition::Part::kInput) {
    position_.part = CursorPosition::Part::kLayers;
    return;
  }
  ++position_.index;
  if (in_layer() && position_.index == static_cast<int32_t>(program_.layers.size())) {
    position_.part = CursorPosition::Part::kOutputs;
    position_.index = 0;
  }
}

void OperatorCursor::SetRange(int32_t num_active) {
  if (in_outputs()) {
    const OutputChunk& chunk = outputs_[position_.index];
    range_ = {chunk.first, chunk.count};
  } else if (list()[position_.op].by_chunk) {
    const int32_t first = position_.row_chunk * chunk_tokens_;
    range_ = {first, std::min(chunk_tokens_, num_active - first)};
  } else {
    range_ = {0, num_active};
  }
}

}  // namespace skein
