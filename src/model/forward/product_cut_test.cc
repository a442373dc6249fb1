// Tickets are bounded for every model and every length of prompt, since a stop signal waits for the
// end of a ticket (docs/ARCHITECTURE.md, "Task").

#include "model/forward/product_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "model/config/shapes.h"

namespace skein {
namespace {

constexpr int32_t kRows[] = {1,   2,   3,   16,  17,   32,   33,   64,   96,   97,   128,
                             192, 255, 256, 257, 1000, 2048, 4095, 4096, 8192, 16384};
constexpr int kThreads[] = {1, 2, 7, 64};

struct NumberFormat {
  const char* name;
  size_t element_bytes;
  ProductUnit unit;
};
constexpr NumberFormat kFormats[] = {
    {"f32", 4, ProductUnit::kVectors},
    {"bf16 on vectors", 2, ProductUnit::kVectors},
    {"bf16 by dot products", 2, ProductUnit::kDots},
    {"int8 on vectors", 1, ProductUnit::kVectors},
    {"int8 by dot products", 1, ProductUnit::kDots},
    {"bf16 on the matrix unit", 2, ProductUnit::kMatrix},
    {"int8 on the matrix unit", 1, ProductUnit::kMatrix},
    {"blocks with a matrix unit", 1, ProductUnit::kMatrixOfBlocks}};

// The products of a model's forward pass, without rows and format.
std::vector<ProductShape> ProductsOf(const ModelShape& shape) {
  const int32_t head_dim =
      shape.head_dim > 0 ? shape.head_dim : shape.hidden_size / shape.num_heads;
  const int32_t q_width = shape.num_heads * head_dim;
  std::vector<ProductShape> products = {
      {.n = q_width + 2 * shape.num_kv_heads * head_dim,
       .k = shape.hidden_size,
       .col_unit = head_dim},
      {.n = shape.hidden_size, .k = q_width},
  };
  if (shape.vocab_size > 0) products.push_back({.n = shape.vocab_size, .k = shape.hidden_size});
  for (const int32_t mlp : {shape.intermediate_size, shape.expert_size, shape.shared_expert_size}) {
    if (mlp == 0) continue;
    products.push_back({.n = mlp, .k = shape.hidden_size, .swiglu = true});
    products.push_back({.n = shape.hidden_size, .k = mlp});
  }
  return products;
}

// The multiplications of a ticket with `cols` columns. With SwiGLU, gate and up have as many each.
int64_t Work(const ProductShape& shape, int64_t rows, int64_t cols) {
  return rows * cols * shape.k * (shape.swiglu ? 2 : 1);
}

// Checks that every element belongs to exactly one ticket.
void ExpectWhole(const ProductShape& shape, const ProductCut& cut) {
  EXPECT_GE(cut.rows, 1);
  EXPECT_GE(cut.cols, kPanelCols);
  EXPECT_EQ(cut.cols % kPanelCols, 0);
  EXPECT_GE(int64_t{cut.rows} * cut.num_row_chunks, shape.m);
  EXPECT_LT(int64_t{cut.rows} * (cut.num_row_chunks - 1), shape.m);
  EXPECT_GE(int64_t{cut.cols} * cut.num_col_chunks, shape.n);
  EXPECT_LT(int64_t{cut.cols} * (cut.num_col_chunks - 1), shape.n);
  if (cut.num_col_chunks > 1) {
    EXPECT_EQ(cut.cols % shape.col_unit, 0);
  }
}

// Checks that a ticket has the least number of columns, or is below the bound without its last unit
// of columns. Units are small, so no ticket exceeds one and a half times the bound.
void ExpectBounded(const ProductShape& shape, const ProductCut& cut) {
  const bool matrix = IsOnMatrixUnit(shape);
  const int32_t panels = matrix ? 2 : 4;
  const int32_t unit = std::lcm(panels * kPanelCols, shape.col_unit);
  const bool many_dots = shape.unit == ProductUnit::kDots && shape.m > kFewDotRows;
  // Few rows take more weights, up to the work of the most rows.
  const int64_t row_bytes = many_dots ? cut.rows * kMaxDotWeightBytes
                                      : std::min(cut.rows * kMaxStreamedWeightBytes,
                                                 kMaxVectorRows * kMaxVectorWeightBytes);
  const int64_t bound =
      matrix ? kMaxTicketProducts
             : std::max(row_bytes / static_cast<int64_t>(shape.element_bytes), kMinVectorProducts);
  if (cut.cols > unit) {
    EXPECT_LT(Work(shape, cut.rows, cut.cols - unit), bound);
  }
  EXPECT_LE(cut.rows, matrix ? 256 : kMaxVectorRows);
  EXPECT_LE(2 * Work(shape, cut.rows, cut.cols), 3 * kMaxTicketProducts);
}

TEST(ForwardCut, TicketsOfProductsAreBoundedForEveryShape) {
  for (const ModelShape& model : ModelShapes()) {
    for (ProductShape shape : ProductsOf(model)) {
      for (const NumberFormat& format : kFormats) {
        shape.element_bytes = format.element_bytes;
        shape.unit = format.unit;
        for (const int32_t m : kRows) {
          shape.m = m;
          for (const int threads : kThreads) {
            SCOPED_TRACE(std::string(model.name) + " n " + std::to_string(shape.n) + " k " +
                         std::to_string(shape.k) + " m " + std::to_string(m) + ", " + format.name +
                         ", threads " + std::to_string(threads));
            const ProductCut cut = CutProduct(shape, threads);
            ExpectWhole(shape, cut);
            ExpectBounded(shape, cut);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

// The size of the largest ticket depends on the model, not on the prompt.
TEST(ForwardCut, ALongerPromptHasMoreTicketsNotLargerOnes) {
  ProductShape shape = {
      .m = 2048, .n = 3072, .k = 1024, .element_bytes = 2, .unit = ProductUnit::kMatrix};
  const ProductCut cut = CutProduct(shape, 2);
  shape.m = 16384;
  const ProductCut longer = CutProduct(shape, 2);
  EXPECT_EQ(longer.rows, cut.rows);
  EXPECT_EQ(longer.cols, cut.cols);
  EXPECT_EQ(longer.num_tickets(), 8 * cut.num_tickets());
}

TEST(ForwardCut, TilesOfAttentionAreBoundedAsFarAsTheirRowsCanShrink) {
  constexpr int64_t kMost = int64_t{kMaxQueryRows} * 6144;  // query rows times keys
  int32_t rows_before = kMaxQueryRows;
  for (int32_t keys = 1; keys <= 131072; keys = keys < 12000 ? keys + 1 : keys + 512) {
    const int32_t rows = AttentionTileRows(keys);
    ASSERT_LE(rows, rows_before) << keys;  // more keys never give more rows
    rows_before = rows;
    if (keys <= 12288) {
      ASSERT_LE(int64_t{rows} * keys, kMost) << keys;
    } else {
      ASSERT_EQ(rows, 32) << keys;
    }
  }
  EXPECT_EQ(AttentionTileRows(6144), 64);
  EXPECT_EQ(AttentionTileRows(6145), 32);
}

TEST(ForwardCut, ATileHasAllHeadsOfAGroupForEachOfItsTokens) {
  for (const ModelShape& model : ModelShapes()) {
    const int32_t group = model.num_heads / model.num_kv_heads;
    for (const int32_t keys : {1, 6144, 6145, 16384, 131072}) {
      const int32_t tokens = AttentionTileTokens(keys, group);
      EXPECT_GE(tokens, 1);
      EXPECT_LE(tokens * group, AttentionTileRows(keys)) << model.name;
      EXPECT_GT((tokens + 1) * group, AttentionTileRows(keys)) << model.name;
    }
  }
  EXPECT_EQ(AttentionTileTokens(16384, 71), 1);  // the group has more heads than a tile has rows
}

}  // namespace
}  // namespace skein
