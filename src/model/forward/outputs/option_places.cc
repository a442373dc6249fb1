#include "model/forward/outputs/option_places.h"

#include <algorithm>
#include <limits>

namespace skein {
namespace {

constexpr int32_t kVisibleWordBits = 32;

// Sets bits in an array of words, ascending, and counts the runs of set bits.
class BitRuns {
 public:
  BitRuns(uint32_t* words, int32_t num_bits) : words_(words) {
    std::fill_n(words, (num_bits + kVisibleWordBits - 1) / kVisibleWordBits, 0u);
  }

  void Set(int32_t begin, int32_t end) {
    if (begin >= end) return;
    if (num_runs_ == 0) first_ = begin;
    if (num_runs_ == 0 || begin != end_) ++num_runs_;
    end_ = end;
    for (int32_t bit = begin; bit < end;) {
      const int32_t at = bit % kVisibleWordBits, count = std::min(kVisibleWordBits - at, end - bit);
      const uint32_t mask = count == kVisibleWordBits ? ~0u : (1u << count) - 1;
      words_[bit / kVisibleWordBits] |= mask << at;
      bit += count;
    }
  }

  int32_t num_runs() const { return num_runs_; }
  int32_t first() const { return first_; }
  int32_t end() const { return end_; }

 private:
  uint32_t* const words_;
  int32_t num_runs_ = 0, first_ = 0, end_ = 0;
};

}  // namespace

OptionPlaces::OptionPlaces(std::span<const int32_t> bounds, int32_t num_tokens)
    : bounds_(bounds), num_tokens_(num_tokens) {
  for (size_t i = 1; i < bounds.size(); ++i) {
    longest_ = std::max(longest_, bounds[i] - bounds[i - 1]);
  }
}

int32_t OptionPlaces::OptionAt(int32_t place) const {
  if (empty() || place < bounds_.front() || place >= bounds_.back()) return -1;
  const auto next = std::ranges::upper_bound(bounds_, place);
  return static_cast<int32_t>(next - bounds_.begin()) - 1;
}

int32_t OptionPlaces::PositionOf(int32_t place) const {
  if (empty() || place < bounds_.front()) return place;
  if (place >= bounds_.back()) return bounds_.front() + longest_ + (place - bounds_.back());
  return bounds_.front() + (place - bounds_[OptionAt(place)]);
}

bool OptionPlaces::FindVisible(int32_t place, bool bidirectional, const LocalLayers* local,
                               uint32_t* visible, int32_t* first, int32_t* end) const {
  const int32_t own = OptionAt(place), position = PositionOf(place);
  const int32_t last = bidirectional ? num_tokens_ : place + 1;       // behind the last place
  int64_t lowest = 0, highest = std::numeric_limits<int32_t>::max();  // bounds of visible positions
  if (local != nullptr) {
    lowest = int64_t{position} - local->before;
    highest = int64_t{position} + local->after;
  }
  BitRuns runs(visible, num_tokens_);
  // Shows the places [begin, stop), whose positions begin at `at`.
  const auto see = [&](int32_t begin, int32_t stop, int32_t at) {
    const int64_t from = begin + std::max<int64_t>(lowest - at, 0);
    const int64_t to = std::min<int64_t>(begin + (highest - at) + 1, std::min(stop, last));
    if (from < to) runs.Set(static_cast<int32_t>(from), static_cast<int32_t>(to));
  };
  if (empty()) {
    see(0, num_tokens_, 0);
  } else {
    const int32_t start = bounds_.front();
    see(0, start, 0);
    if (own >= 0) {
      see(bounds_[own], bounds_[own + 1], start);
    } else if (local == nullptr) {
      see(start, bounds_.back(), start);  // all of them: no position is too far away
    } else {
      for (size_t i = 0; i + 1 < bounds_.size(); ++i) see(bounds_[i], bounds_[i + 1], start);
    }
    see(bounds_.back(), num_tokens_, start + longest_);
  }
  *first = runs.first();
  *end = runs.end();
  return runs.num_runs() > 1;
}

}  // namespace skein
