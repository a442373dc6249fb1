#include "runtime/candidate_set.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

// Maps floats to integer keys in the same order. -0 becomes +0: the two are equal, and only ids
// decide between them.
uint32_t KeyOf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

}  // namespace

void CandidateSet::KeepAtLeast(float floor) {
  size_ -=
      std::ranges::remove_if(kept(), [&](const Candidate& c) { return c.value < floor; }).size();
}

double CandidateSet::Total() const {
  double total = 0;
  for (const Candidate& c : candidates()) total += c.value;
  return total;
}

uint32_t CandidateSet::FindDigit(uint32_t prefix, int shift, int bits, int64_t* count,
                                 double* mass) {
  const uint32_t num_buckets = 1u << bits;
  std::fill_n(buckets_.begin(), num_buckets, Bucket{});
  for (const Candidate& c : candidates()) {
    const uint64_t key = KeyOf(c.value);
    if (key >> (shift + bits) != uint64_t{prefix} >> (shift + bits)) continue;
    Bucket& bucket = buckets_[(key >> shift) & (num_buckets - 1)];
    ++bucket.count;
    bucket.mass += c.value;
  }
  uint32_t last = 0;  // the lowest bucket with candidates; used if rounding leaves a remainder
  for (uint32_t digit = num_buckets; digit-- > 0;) {
    const Bucket& bucket = buckets_[digit];
    if (bucket.count == 0) continue;
    last = digit;
    if (bucket.count >= *count || bucket.mass >= *mass) return digit;
    *count -= bucket.count;
    *mass -= bucket.mass;
  }
  // Only rounding leads here. All buckets have been subtracted, so the lowest one is kept
  // completely.
  *count = std::numeric_limits<int64_t>::max();
  *mass = std::numeric_limits<double>::infinity();
  return last;
}

void CandidateSet::Cut(int64_t count, double mass) {
  SKEIN_CHECK(count >= 1);
  if (size_ == 0 || (count >= static_cast<int64_t>(size_) && std::isinf(mass))) return;
  constexpr int kShifts[] = {21, 10, 0};
  constexpr int kBits[] = {11, 11, 10};
  uint32_t cut = 0;  // the key of the last kept candidates
  for (int level = 0; level < 3; ++level) {
    cut |= FindDigit(cut, kShifts[level], kBits[level], &count, &mass) << kShifts[level];
  }
  // All candidates at the cut have the same value. Those with the lowest ids are kept.
  int64_t needed = count;
  const auto at_cut =
      std::ranges::find_if(candidates(), [&](const Candidate& c) { return KeyOf(c.value) == cut; });
  SKEIN_CHECK(at_cut != candidates().end());
  if (!std::isinf(mass) && at_cut->value > 0) {
    needed = std::min(needed, static_cast<int64_t>(std::ceil(mass / at_cut->value)));
  }
  needed = std::max<int64_t>(needed, 1);
  size_t num_kept = 0;
  for (const Candidate& c : candidates()) {
    const uint32_t key = KeyOf(c.value);
    if (key > cut || (key == cut && needed-- > 0)) memory_[num_kept++] = c;
  }
  size_ = num_kept;
}

}  // namespace skein
