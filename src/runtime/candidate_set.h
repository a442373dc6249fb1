#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/paged_array.h"

namespace skein {

// A set of tokens, each with a value, in ascending order of id. A cut keeps the best candidates (by
// descending value, then ascending id) without sorting: a radix search over the bits of the values
// finds the cut, with one pass for every 11 bits. Every result depends only on the values and ids.
// All memory is allocated at the start; pages are used as far as candidates were ever added.
class CandidateSet {
 public:
  struct Candidate {
    float value = 0;
    int32_t id = 0;
  };

  explicit CandidateSet(int32_t capacity) : memory_(static_cast<size_t>(capacity)) {}

  void Clear() { size_ = 0; }
  // REQUIRES: fewer candidates than the capacity.
  void Add(int32_t id, float value) { memory_[size_++] = {value, id}; }
  std::span<const Candidate> candidates() const { return {memory_.data(), size_}; }
  // values [candidates().size()], in the order of the ids.
  void SetValues(const float* values) {
    for (Candidate& c : kept()) c.value = *values++;
  }

  // Keeps the `count` best candidates. REQUIRES: count >= 1; no NaN.
  void KeepLargest(int64_t count) { Cut(count, std::numeric_limits<double>::infinity()); }
  // Keeps the smallest number of best candidates whose values sum to at least `mass`, and at least
  // one. REQUIRES: values >= 0.
  void KeepMass(double mass) { Cut(std::numeric_limits<int64_t>::max(), mass); }
  // Keeps the candidates whose value is at least `floor`.
  void KeepAtLeast(float floor);

  // The sum of the values, added in the order of the ids.
  double Total() const;

 private:
  static constexpr int kDigitBits = 11;
  struct Bucket {
    int64_t count = 0;
    double mass = 0;
  };

  // Keeps the smallest number of best candidates that reach `count` or `mass`, whichever comes
  // first.
  void Cut(int64_t count, double mass);
  // Considers the candidates whose key agrees with `prefix` above bit `shift + bits`. Returns the
  // bucket of the next digit that contains the cut. The buckets above that bucket are subtracted
  // from *count and *mass.
  uint32_t FindDigit(uint32_t prefix, int shift, int bits, int64_t* count, double* mass);

  std::span<Candidate> kept() { return {memory_.data(), size_}; }

  PagedArray<Candidate> memory_;  // [capacity]; the first size_ are the candidates
  size_t size_ = 0;
  std::vector<Bucket> buckets_ = std::vector<Bucket>(size_t{1} << kDigitBits);
};

}  // namespace skein
