#pragma once

#include <cstdint>
#include <span>

#include "model/config/config.h"

namespace skein {

// The places of the tokens of a row whose options are read side by side
// (ForwardRow::option_bounds):
//
//   place      0 .. begin | option 0 | option 1 | ... | end .. num_tokens
//   position   0 .. begin | begin .. | begin .. | ... | begin + the longest option ..
//
// Without options a token's position is its place.
class OptionPlaces {
 public:
  // `bounds` is borrowed.
  OptionPlaces(std::span<const int32_t> bounds, int32_t num_tokens);

  int32_t PositionOf(int32_t place) const;

  // Writes which keys the token at `place` sees to visible [num_tokens / 32, rounded up], and to
  // `window` the range from the first to behind the last of them. A token sees those at and before
  // its own place, or all of them if `bidirectional`; none of other options; in a local layer
  // (`local` is not null) those whose positions lie near its own. Returns whether the window hides
  // keys: otherwise the bits are not needed.
  bool FindVisible(int32_t place, bool bidirectional, const LocalLayers* local, uint32_t* visible,
                   int32_t* first, int32_t* end) const;

 private:
  bool empty() const { return bounds_.empty(); }
  // The option of a place, or -1.
  int32_t OptionAt(int32_t place) const;

  std::span<const int32_t> bounds_;
  int32_t num_tokens_ = 0;
  int32_t longest_ = 0;  // tokens of an option
};

}  // namespace skein
