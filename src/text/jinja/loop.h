#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

// The state of a for loop, which its body sees as `loop`. An item is tested against the loop's
// condition only when the loop reaches the item or looks ahead at it.
struct Loop {
  std::vector<Value> source;
  std::function<bool(const Value&)> keep;  // the loop's condition; null: all items are kept

  Value current;
  std::optional<Value> previous;
  std::optional<Value> next;  // the next item, after a look ahead
  Integer index0 = -1;

  // Moves to the next item. Returns false at the end.
  bool Advance();

  bool HasMore() const { return next.has_value() || num_taken_ < source.size(); }

  // `loop.name`; undefined if there is no such attribute.
  Value Attribute(std::string_view name, RenderState* state);

 private:
  // Makes `next` hold the next item if there is one.
  void Peek();
  // Counts all items that pass the condition. Tests all remaining items.
  Integer Length();

  size_t num_taken_ = 0;  // number of items taken from source
};

}  // namespace skein::jinja
