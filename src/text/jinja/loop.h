#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

// The state of a for loop, which its body sees as `loop`. Items are tested against the loop's
// condition when they are reached, or looked ahead at, and not before.
struct Loop {
  std::vector<Value> source;
  std::function<bool(const Value&)> keep;  // null: all

  Value current;
  std::optional<Value> previous;
  std::optional<Value> next;  // looked ahead at
  Integer index0 = -1;

  // Moves to the next item; false at the end.
  bool Advance();

  bool HasMore() const { return next.has_value() || num_taken_ < source.size(); }

  // `loop.name`; undefined if there is none.
  Value Attribute(std::string_view name, RenderState* state);

 private:
  // Makes `next` hold the next item if there is one.
  void Peek();
  // All items that pass; ends the tests.
  Integer Length();

  size_t num_taken_ = 0;  // of source
};

}  // namespace skein::jinja
