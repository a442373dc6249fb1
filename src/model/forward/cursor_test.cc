#include "model/forward/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace skein {
namespace {

using ::testing::ElementsAre;

class NamedOperator : public Operator {
 public:
  explicit NamedOperator(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange) override { return 1; }
  void Run(int32_t) override {}

 private:
  std::string_view name_;
};

// Two layers, each with a pair of operators by chunk, one operator over all rows, and one by chunk
// at the end.
ForwardProgram TwoLayers() {
  ForwardProgram program;
  program.input.Whole<NamedOperator>("embed");
  program.layers.resize(2);
  for (OperatorList& layer : program.layers) {
    layer.ByChunk<NamedOperator>("norm");
    layer.ByChunk<NamedOperator>("qkv");
    layer.Whole<NamedOperator>("attention");
    layer.ByChunk<NamedOperator>("mlp");
  }
  program.of(OutputKind::kLogits).Whole<NamedOperator>("logits");
  program.of(OutputKind::kClasses).Whole<NamedOperator>("dense");
  program.of(OutputKind::kClasses).Whole<NamedOperator>("classes");
  return program;
}

std::string Here(const OperatorCursor& cursor) {
  return std::string(cursor.op().name()) + " " + std::to_string(cursor.range().first) + "+" +
         std::to_string(cursor.range().count);
}

std::vector<std::string> Walk(OperatorCursor* cursor, int32_t num_active) {
  std::vector<std::string> all;
  for (; !cursor->done(); cursor->Next(num_active)) all.push_back(Here(*cursor));
  return all;
}

TEST(OperatorCursorTest, GroupsByChunkRepeatForEachChunk) {
  const ForwardProgram program = TwoLayers();
  OperatorCursor cursor(program, 4);
  cursor.Begin({}, 6);
  EXPECT_THAT(Walk(&cursor, 6),
              ElementsAre("embed 0+6",                                                    //
                          "norm 0+4", "qkv 0+4", "norm 4+2", "qkv 4+2", "attention 0+6",  //
                          "mlp 0+4", "mlp 4+2",                                           //
                          "norm 0+4", "qkv 0+4", "norm 4+2", "qkv 4+2", "attention 0+6",  //
                          "mlp 0+4", "mlp 4+2"));
}

TEST(OperatorCursorTest, EachChunkOfOutputsRunsTheListOfItsKind) {
  const ForwardProgram program = TwoLayers();
  OperatorCursor cursor(program, 8);
  const std::vector<OutputChunk> outputs = {
      {OutputKind::kLogits, 0, 3}, {OutputKind::kLogits, 3, 1}, {OutputKind::kClasses, 0, 2}};
  cursor.Begin(outputs, 5);
  while (!cursor.in_outputs()) cursor.Next(5);
  EXPECT_THAT(Walk(&cursor, 5),
              ElementsAre("logits 0+3", "logits 3+1", "dense 0+2", "classes 0+2"));
}

TEST(OperatorCursorTest, FewerActiveRowsCountFromTheNextOperatorOn) {
  const ForwardProgram program = TwoLayers();
  OperatorCursor cursor(program, 4);
  cursor.Begin({}, 9);
  while (cursor.op().name() != "attention") cursor.Next(9);
  cursor.Next(3);
  EXPECT_EQ(Here(cursor), "mlp 0+3");
  cursor.Next(3);
  EXPECT_EQ(Here(cursor), "norm 0+3");
  EXPECT_EQ(cursor.position().index, 1);
}

TEST(OperatorCursorTest, ANewOperatorBeginsAtItsFirstTicket) {
  const ForwardProgram program = TwoLayers();
  OperatorCursor cursor(program, 4);
  cursor.Begin({}, 4);
  const CursorPosition begin = cursor.position();
  cursor.set_next_ticket(7);
  EXPECT_NE(cursor.position(), begin);
  cursor.Next(4);
  EXPECT_EQ(cursor.position().next_ticket, 0);
  cursor.Begin({}, 4);
  EXPECT_EQ(cursor.position(), begin);
}

// Walks over 6 rows in chunks of 4. Returns the operators before which a pass may stop.
std::vector<std::string> Boundaries(StopAt stop_at) {
  const ForwardProgram program = TwoLayers();
  OperatorCursor cursor(program, 4);
  const std::vector<OutputChunk> outputs = {{OutputKind::kClasses, 0, 2}};
  std::vector<std::string> all;
  for (cursor.Begin(outputs, 6); !cursor.done(); cursor.Next(6)) {
    if (cursor.AtBoundary(stop_at)) all.push_back(Here(cursor));
  }
  return all;
}

TEST(OperatorCursorTest, Boundaries) {
  EXPECT_THAT(Boundaries(StopAt::kLayer), ElementsAre("norm 0+4", "norm 0+4", "dense 0+2"));
  EXPECT_EQ(Boundaries(StopAt::kOperator).size(), 17u);
  EXPECT_TRUE(Boundaries(StopAt::kTicket).empty());
  EXPECT_TRUE(Boundaries(StopAt::kEnd).empty());
}

}  // namespace
}  // namespace skein
