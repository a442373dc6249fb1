#pragma once

#include <cstdint>
#include <string_view>

namespace skein {

// The rows of an operator: active tokens [first, first + count) of the batch (BatchLayout). For an
// operator on outputs, they are entries of the batch's list of outputs of one kind.
struct OperatorRange {
  int32_t first = 0;
  int32_t count = 0;
};

// One operator of a forward pass: a list of tickets over a range of rows. A pass stops between
// tickets only, so a ticket takes at most about a millisecond (model/forward/product_cut.h).
//
// An operator belongs to one pass and one layer. A new operator is a class of its own and a line in
// the list of its layer (model/forward/program.cc). It reads and writes the buffers of PassState.
class Operator {
 public:
  virtual ~Operator() = default;

  // For traces and tests.
  virtual std::string_view name() const = 0;

  // Prepares the tickets for these rows and returns their number, which may be 0. The thread that
  // runs the pass calls it once before the tickets of a range run. Allocates nothing in a steady
  // state.
  virtual int32_t Begin(OperatorRange range) = 0;

  // Runs one ticket of the last range. Threads run different tickets at the same time, in any
  // order. No bit of a result depends on the number of tickets.
  virtual void Run(int32_t ticket) = 0;
};

}  // namespace skein
