#include "server/reads/vectors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kFloatCharsMax = 16;  // "-1.17549435e-38" and a comma

double SumOfProducts(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

void Normalize(std::span<float> values) {
  const double length = std::sqrt(SumOfProducts(values, values));
  if (length == 0) return;
  for (float& value : values) value = static_cast<float>(double{value} / length);
}

double Cosine(std::span<const float> a, std::span<const float> b) {
  SKEIN_CHECK(a.size() == b.size());
  const double lengths = std::sqrt(SumOfProducts(a, a)) * std::sqrt(SumOfProducts(b, b));
  // Rounding may exceed 1 by a few units in the last place, hence the clamp.
  return lengths == 0 ? 0 : std::clamp(SumOfProducts(a, b) / lengths, -1.0, 1.0);
}

std::vector<float> DenseVector(const ReadValues& sparse, int32_t size) {
  std::vector<float> vector(static_cast<size_t>(size));
  for (size_t i = 0; i < sparse.ids.size(); ++i) {
    vector[static_cast<size_t>(sparse.ids[i])] = sparse.values[i];
  }
  return vector;
}

ReadValues WeightsOfTokens(std::span<const float> weights, std::vector<TokenId> tokens) {
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  std::erase_if(tokens, [&](TokenId id) { return id >= std::ssize(weights) || weights[id] == 0; });
  ReadValues sparse;
  for (const TokenId id : tokens) sparse.values.push_back(weights[id]);
  sparse.ids = std::move(tokens);
  return sparse;
}

double SparseProduct(const ReadValues& a, const ReadValues& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.ids.size() && j < b.ids.size();) {
    if (a.ids[i] == b.ids[j]) sum += double{a.values[i]} * double{b.values[j]};
    const bool advances_a = a.ids[i] <= b.ids[j], advances_b = b.ids[j] <= a.ids[i];
    i += advances_a ? 1 : 0;
    j += advances_b ? 1 : 0;
  }
  return sum;
}

double SparseCosine(const ReadValues& a, const ReadValues& b) {
  const double lengths =
      std::sqrt(SumOfProducts(a.values, a.values)) * std::sqrt(SumOfProducts(b.values, b.values));
  return lengths == 0 ? 0 : std::clamp(SparseProduct(a, b) / lengths, -1.0, 1.0);
}

std::vector<float> Activate(std::span<const float> values, ClassActivation activation) {
  std::vector<float> result(values.begin(), values.end());
  if (activation == ClassActivation::kSigmoid) {
    for (float& value : result) value = static_cast<float>(1 / (1 + std::exp(-double{value})));
  }
  if (activation != ClassActivation::kSoftmax || result.empty()) return result;
  const double max = *std::ranges::max_element(values);
  double sum = 0;
  for (float value : values) sum += std::exp(double{value} - max);
  for (float& value : result) value = static_cast<float>(std::exp(double{value} - max) / sum);
  return result;
}

void AppendFloats(std::span<const float> values, std::string* out) {
  const size_t begin = out->size();
  out->resize(begin + values.size() * kFloatCharsMax + 2);
  char* at = out->data() + begin;
  char* const end = out->data() + out->size();
  *at++ = '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *at++ = ',';
    if (std::isfinite(values[i])) {
      at = std::to_chars(at, end, values[i]).ptr;
    } else {
      at = std::copy_n("null", 4, at);
    }
  }
  *at++ = ']';
  out->resize(static_cast<size_t>(at - out->data()));
}

}  // namespace skein
