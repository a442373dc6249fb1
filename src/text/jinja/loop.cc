#include "text/jinja/loop.h"

#include <string>
#include <utility>

namespace skein::jinja {

void Loop::Peek() {
  while (!next && num_taken_ < source.size()) {
    Value item = source[num_taken_++];
    if (!keep || keep(item)) next = std::move(item);
  }
}

bool Loop::Advance() {
  Peek();
  if (!next) return false;
  if (index0 >= 0) previous = std::move(current);
  current = std::move(*next);
  next.reset();
  ++index0;
  return true;
}

Integer Loop::Length() {
  std::vector<Value> rest;
  while (Peek(), next) {
    rest.push_back(std::move(*next));
    next.reset();
  }
  source = std::move(rest);
  num_taken_ = 0;
  keep = nullptr;
  return index0 + 1 + static_cast<Integer>(source.size());
}

Value Loop::Attribute(std::string_view name, RenderState* state) {
  if (name == "index") return Value::Of(index0 + 1);
  if (name == "index0") return Value::Of(index0);
  if (name == "first") return Value::Of(index0 == 0);
  if (name == "last") {
    Peek();
    return Value::Of(!next.has_value());
  }
  if (name == "previtem") {
    return previous ? *previous : Value::UndefinedBecause("there is no previous item");
  }
  if (name == "nextitem") {
    Peek();
    return next ? *next : Value::UndefinedBecause("there is no next item");
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    state->Charge(source.size() - num_taken_);
    const Integer length = Length();
    if (name == "length") return Value::Of(length);
    return Value::Of(length - index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "changed" || name == "cycle" || name == "depth" || name == "depth0") {
    state->FailUnsupported("'loop." + std::string(name) + "'");
    return {};
  }
  return Value::UndefinedBecause("'loop' has no attribute '" + std::string(name) + "'");
}

}  // namespace skein::jinja
