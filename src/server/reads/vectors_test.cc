#include "server/reads/vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "server/json/base64.h"
#include "server/json/json.h"

namespace skein {
namespace {

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    do {
      const auto bits = static_cast<uint32_t>(random());
      std::memcpy(&value, &bits, sizeof value);
    } while (!std::isfinite(value));
  }
  return values;
}

std::string Base64(const std::vector<float>& values) {
  std::string text;
  AppendBase64(std::as_bytes(std::span(values)), &text);
  return text;
}

TEST(Vectors, FloatsReadBackAsTheyWere) {
  std::vector<float> values = RandomFloats(20000, 7);
  for (float edge :
       {0.0f, -0.0f, 1.0f, std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(),
        std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min(),
        -std::numeric_limits<float>::denorm_min()}) {
    values.push_back(edge);
  }
  std::string text = "x";
  AppendFloats(values, &text);
  ASSERT_EQ(text[0], 'x');
  const Json json = *ParseJson(std::string_view(text).substr(1));
  ASSERT_EQ(json.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto back = static_cast<float>(json[i].get<double>());
    ASSERT_EQ(back, values[i]);
  }
  text.clear();
  AppendFloats(std::vector<float>{}, &text);
  EXPECT_EQ(text, "[]");
  text.clear();
  AppendFloats(std::vector<float>{0.1f, NAN, -INFINITY, 2}, &text);
  EXPECT_EQ(text, "[0.1,null,null,2]");
}

TEST(Vectors, Base64OfEveryRest) {
  EXPECT_EQ(Base64({}), "");
  EXPECT_EQ(Base64({1.0f}), "AACAPw==");
  EXPECT_EQ(Base64({1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(Base64({1.0f, -2.0f, 0.5f}), "AACAPwAAAMAAAAA/");
}

TEST(Vectors, Normalize) {
  std::vector<float> values = {3, 0, -4};
  Normalize(values);
  EXPECT_EQ(values, (std::vector<float>{0.6f, 0, -0.8f}));
  // The squares exceed the range of a float.
  values = {0x3p100f, 0x4p100f};
  Normalize(values);
  EXPECT_EQ(values, (std::vector<float>{0.6f, 0.8f}));
  values = {0, 0};
  Normalize(values);
  EXPECT_EQ(values, (std::vector<float>{0, 0}));
}

TEST(Vectors, Cosine) {
  const std::vector<float> a = {1, 2, 2}, b = {2, 4, 4}, c = {-2, 1, 0}, zero = {0, 0, 0};
  EXPECT_DOUBLE_EQ(Cosine(a, b), 1);
  EXPECT_DOUBLE_EQ(Cosine(a, c), 0);
  EXPECT_EQ(Cosine(a, zero), 0);
}

TEST(Vectors, Activate) {
  const std::vector<float> logits = {1000, 1000, -1000};
  EXPECT_EQ(Activate(logits, ClassActivation::kSoftmax), (std::vector<float>{0.5f, 0.5f, 0}));
  EXPECT_EQ(Activate(logits, ClassActivation::kSigmoid), (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(Activate(logits, ClassActivation::kNone), logits);
  const std::vector<float> odds = {std::log(3.0f), 0};
  EXPECT_NEAR(Activate(odds, ClassActivation::kSoftmax)[0], 0.75, 1e-7);
  EXPECT_NEAR(Activate(odds, ClassActivation::kSigmoid)[0], 0.75, 1e-7);
}

TEST(VectorsTest, SparseVectors) {
  const ReadValues a = {.values = {1, 2, 3}, .ids = {0, 4, 5}};
  const ReadValues b = {.values = {5, 7}, .ids = {4, 9}};
  const ReadValues zero;
  EXPECT_EQ(DenseVector(a, 7), (std::vector<float>{1, 0, 0, 0, 2, 3, 0}));
  EXPECT_EQ(DenseVector(zero, 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(SparseProduct(a, b), 10);
  EXPECT_EQ(SparseProduct(b, a), 10);
  EXPECT_EQ(SparseProduct(a, a), 14);
  EXPECT_EQ(SparseProduct(a, zero), 0);
  EXPECT_DOUBLE_EQ(SparseCosine(a, b), 10 / std::sqrt(14.0 * 74.0));
  EXPECT_EQ(SparseCosine(a, a), 1);
  EXPECT_EQ(SparseCosine(zero, a), 0);
}

}  // namespace
}  // namespace skein
