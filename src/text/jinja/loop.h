#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

// The state of a for loop; its body sees it as `loop`. An item is tested against the condition of
// the loop only when the loop reaches it or looks ahead at it.
struct Loop {
  std::vector<Value> source;
  std::function<bool(const Value&)> keep;  // null: all

  Value current;
  std::optional<Value> previous;
  std::optional<Value> next;  // the item looked ahead at
  Integer index0 = -1;

  // Moves to the next item; false at the end.
  bool Advance();

  bool HasMore() const { return next.has_value() || num_taken_ < source.size(); }

  // `loop.name`; undefined if there is none.
  Value Attribute(std::string_view name, RenderState* state);

 private:
  // Makes `next` hold the next item if there is one.
  void Peek();
  // Counts all items that pass the condition, and tests all that are left.
  Integer Length();

  size_t num_taken_ = 0;  // of source
};

}  // namespace skein::jinja
