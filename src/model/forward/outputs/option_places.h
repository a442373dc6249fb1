#pragma once

#include <cstdint>
#include <span>

#include "model/config/config.h"

namespace skein {

// The places of a row's tokens, if its options are read side by side (ForwardRow::option_bounds). A
// place is the index of a token in the row; several places may have the same position:
//
//   place      0 .. begin | option 0 | option 1 | ... | end .. num_tokens
//   position   0 .. begin | begin .. | begin .. | ... | begin + the longest option ..
//
// Without options, a token's position is its place.
class OptionPlaces {
 public:
  // `bounds` is borrowed.
  OptionPlaces(std::span<const int32_t> bounds, int32_t num_tokens);

  int32_t PositionOf(int32_t place) const;

  // Finds the keys that the token at `place` sees. Writes a bit for each key to visible
  // [num_tokens / 32, rounded up]; *first and *end become the range of these keys. A token sees the
  // keys at and before its own place, or all keys if `bidirectional`, but no keys of other options.
  // In a local layer (`local` is not null), it sees only the keys whose positions are near its own.
  // Returns whether the range contains hidden keys; if not, the bits are not needed.
  bool FindVisible(int32_t place, bool bidirectional, const LocalLayers* local, uint32_t* visible,
                   int32_t* first, int32_t* end) const;

 private:
  bool empty() const { return bounds_.empty(); }
  // The option to which a place belongs; -1: none.
  int32_t OptionAt(int32_t place) const;

  std::span<const int32_t> bounds_;
  int32_t num_tokens_ = 0;
  int32_t longest_ = 0;  // tokens of the longest option
};

}  // namespace skein
