#include "base/blocks/block_quantizer.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/blocks/quantize_q4.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/magnitude.h"

namespace skein {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Terms = std::span<const float, kBlockTerms>;

constexpr auto kInfinityBits = std::bit_cast<uint32_t>(kInfinity);

// Rounds a number below 2^22 to the nearest integer, ties to even: the sum has no room for fraction
// bits.
float Nearest(float x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

float InverseOf(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

void PutHalf(F16 half, std::byte* out) { std::memcpy(out, &half.bits, sizeof(half.bits)); }

// Writes a block that is all NaN, because its scale (its first two bytes) is NaN.
void PutNan(int32_t bytes, std::byte* out) {
  PutHalf(ToF16(std::numeric_limits<float>::quiet_NaN()), out);
  std::fill(out + 2, out + bytes, std::byte{0});
}

// The scale is `largest`, the largest magnitude, over 127.
void QuantizeQ8(Terms x, float largest, std::byte* out) {
  const F16 half = ToF16(largest / 127.0f);
  const __m128 inverse = _mm_set1_ps(InverseOf(ToFloat(half)));
  PutHalf(half, out);
  // The nearest integers, ties to even. Packing saturates those that a small scale makes too large.
  const auto nearest = [&](int32_t i) {
    return _mm_cvtps_epi32(_mm_mul_ps(_mm_loadu_ps(&x[i]), inverse));
  };
  const __m128i least = _mm_set1_epi16(-127);
  for (int32_t i = 0; i < kBlockTerms; i += 16) {
    const __m128i low = _mm_packs_epi32(nearest(i), nearest(i + 4));
    const __m128i high = _mm_packs_epi32(nearest(i + 8), nearest(i + 12));
    const __m128i q = _mm_packs_epi16(_mm_max_epi16(low, least), _mm_max_epi16(high, least));
    std::memcpy(out + 2 + i, &q, sizeof(q));
  }
}

// 32 elements as scale * u - minimum, with u in [0, 15]. Scale and minimum are not negative.
struct Line {
  float scale = 0.0f, minimum = 0.0f;
};

// Rounds each element to the nearest u [kBlockTerms]. Returns the squared error.
float RoundToLine(Terms x, const Line& line, float* u) {
  const float inverse = InverseOf(line.scale);
  float error = 0.0f;
  for (int32_t i = 0; i < kBlockTerms; ++i) {
    u[i] = Nearest(std::clamp((x[i] + line.minimum) * inverse, 0.0f, 15.0f));
    const float miss = x[i] - (line.scale * u[i] - line.minimum);
    error += miss * miss;
  }
  return error;
}

// The line of least squares through the points (u, x), with a minimum of at least 0. Returns `line`
// itself if the line of least squares does not rise.
Line LeastSquares(Terms x, const float* u, const Line& line) {
  float sum_u = 0, sum_uu = 0, sum_x = 0, sum_ux = 0;
  for (int32_t i = 0; i < kBlockTerms; ++i) {
    sum_u += u[i];
    sum_uu += u[i] * u[i];
    sum_x += x[i];
    sum_ux += u[i] * x[i];
  }
  constexpr float kCount = kBlockTerms;
  const float determinant = kCount * sum_uu - sum_u * sum_u;
  if (determinant <= 0.0f) return line;
  Line found;
  found.scale = (kCount * sum_ux - sum_u * sum_x) / determinant;
  found.minimum = (found.scale * sum_u - sum_x) / kCount;
  if (found.minimum < 0.0f) found = {sum_ux / sum_uu, 0.0f};
  return found.scale > 0.0f ? found : line;
}

// The best of nine lines. Each candidate cuts the range into 13 to 17 steps and takes the nearest
// u; the line of least squares goes through these points.
Line BestLine(Terms x) {
  constexpr int32_t kCandidates = 9;
  const auto [least, largest] = std::ranges::minmax(x);
  const float minimum = std::max(0.0f, -least), range = largest + minimum;
  Line best = {0.0f, minimum};
  float u[kBlockTerms];
  float best_error = RoundToLine(x, best, u);
  if (!(range > 0.0f)) return best;
  for (int32_t candidate = 0; candidate < kCandidates; ++candidate) {
    const Line cut = {range / (13.0f + 0.5f * static_cast<float>(candidate)), minimum};
    RoundToLine(x, cut, u);
    const Line fit = LeastSquares(x, u, cut);
    const float error = RoundToLine(x, fit, u);
    if (!(error < best_error)) continue;
    best_error = error;
    best = fit;
  }
  return best;
}

// The best line of 32 elements whose scale and minimum are integers times d and dmin. The
// candidates are the integers nearest to `line` and their neighbours.
struct IntegerLine {
  int32_t scale = 0, minimum = 0;  // in [0, 63]
  float u[kBlockTerms];
};
IntegerLine BestIntegerLine(Terms x, const Line& line, float d, float dmin) {
  const auto nearest = [](float value, float unit) {
    return static_cast<int32_t>(Nearest(std::min(value * InverseOf(unit), 63.0f)));
  };
  const int32_t scale = nearest(line.scale, d), minimum = nearest(line.minimum, dmin);
  IntegerLine best;
  float best_error = kInfinity;
  for (const int32_t s : {scale, scale - 1, scale + 1}) {
    for (const int32_t m : {minimum, minimum - 1, minimum + 1}) {
      if (std::min(s, m) < 0 || std::max(s, m) > 63) continue;
      IntegerLine found = {s, m, {}};
      const Line rounded = {d * static_cast<float>(s), dmin * static_cast<float>(m)};
      const float error = RoundToLine(x, rounded, found.u);
      if (best_error < kInfinity && !(error < best_error)) continue;
      best_error = error;
      best = found;
    }
  }
  return best;
}

// d and dmin are such that the largest scale and the largest minimum of the eight lines are 63.
void QuantizeQ4K(std::span<const float> x, std::byte* out) {
  Line lines[kBlocksOfSuper];
  float scale = 0.0f, minimum = 0.0f;
  for (int32_t part = 0; part < kBlocksOfSuper; ++part) {
    lines[part] = BestLine(x.subspan(kBlockTerms * part).first<kBlockTerms>());
    scale = std::max(scale, lines[part].scale);
    minimum = std::max(minimum, lines[part].minimum);
  }
  const F16 d = ToF16(scale / 63.0f), dmin = ToF16(minimum / 63.0f);
  PutHalf(d, out);
  PutHalf(dmin, out + 2);
  std::byte *bits = out + 4, *nibbles = out + 16;
  std::fill(bits, nibbles, std::byte{0});
  uint8_t u[kSuperElements];
  for (int32_t part = 0; part < kBlocksOfSuper; ++part) {
    const IntegerLine line = BestIntegerLine(x.subspan(kBlockTerms * part).first<kBlockTerms>(),
                                             lines[part], ToFloat(d), ToFloat(dmin));
    for (int32_t i = 0; i < kBlockTerms; ++i) {
      u[kBlockTerms * part + i] = static_cast<uint8_t>(line.u[i]);
    }
    // Packs six-bit numbers, as block_format.cc unpacks them.
    const int32_t at = part % 4;
    if (part < 4) {
      bits[at] |= static_cast<std::byte>(line.scale);
      bits[at + 4] |= static_cast<std::byte>(line.minimum);
    } else {
      bits[at] |= static_cast<std::byte>(line.scale >> 4 << 6);
      bits[at + 4] |= static_cast<std::byte>(line.minimum >> 4 << 6);
      bits[at + 8] = static_cast<std::byte>((line.scale & 15) | (line.minimum & 15) << 4);
    }
  }
  for (int32_t i = 0; i < kSuperElements / 2; ++i) {
    const int32_t at = i / 32 * 64 + i % 32;
    nibbles[i] = static_cast<std::byte>(u[at] | u[at + 32] << 4);
  }
}

}  // namespace

bool CanQuantize(BlockFormat format) {
  return format == BlockFormat::kQ8_0 || format == BlockFormat::kQ4_0 ||
         format == BlockFormat::kQ4K;
}

void QuantizeBlocks(BlockFormat format, std::span<const float> x, std::byte* out) {
  SKEIN_CHECK(CanQuantize(format));
  const BlockTraits& traits = TraitsOf(format);
  const auto elements = static_cast<size_t>(traits.file_elements);
  SKEIN_CHECK(x.size() % elements == 0);
  const int32_t lanes = LanesQ4();
  BlocksQ4 q4;
  const auto quantize_q4 = [&] {
    if (q4.count > 0) QuantizeQ4(q4, lanes);
    q4.count = 0;
  };
  for (; !x.empty(); x = x.subspan(elements), out += traits.file_bytes) {
    const auto block = x.first(elements);
    const uint32_t largest = LargestMagnitude(block);
    if (largest >= kInfinityBits) {
      PutNan(traits.file_bytes, out);
    } else if (format == BlockFormat::kQ4K) {
      QuantizeQ4K(block, out);
    } else if (format == BlockFormat::kQ8_0) {
      QuantizeQ8(block.first<kBlockTerms>(), std::bit_cast<float>(largest), out);
    } else {
      q4.x[q4.count] = block.data();
      q4.out[q4.count] = out;
      if (++q4.count == lanes) quantize_q4();
    }
  }
  quantize_q4();
}

}  // namespace skein
