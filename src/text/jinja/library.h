#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

// The filters, tests and methods that templates call. The parser asks which of them exist; the
// evaluator calls them.

// The evaluated arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

bool IsFilter(std::string_view name);
bool IsTest(std::string_view name);
// Whether `name` is a method of a string or dict, including methods that the sandbox forbids.
bool IsMethod(std::string_view name);

// `value | name(arguments)`. REQUIRES: IsFilter(name).
Value CallFilter(std::string_view name, const Value& value, const Arguments& arguments,
                 RenderState* state);
// `value is name(arguments)`. REQUIRES: IsTest(name).
bool CallTest(std::string_view name, const Value& value, const Arguments& arguments,
              RenderState* state);
// `receiver.name(arguments)`.
Value CallMethod(const Value& receiver, std::string_view name, const Arguments& arguments,
                 RenderState* state);

// Looks up `value.name` and `value[key]` as the sandboxed environment does; undefined if there is
// no such attribute or item.
Value GetAttribute(const Value& value, std::string_view name, RenderState* state);
Value GetItem(const Value& value, const Value& key, RenderState* state);
// Computes `value[start:stop:step]`; a bound that is left out is None.
Value GetSlice(const Value& value, const Value& start, const Value& stop, const Value& step,
               RenderState* state);

// `a op b` for + - * %.
Value Arithmetic(std::string_view op, const Value& a, const Value& b, RenderState* state);
Value Negate(const Value& value, RenderState* state);
// a op b for == != < <= > >= in, "not in".
bool Compare(std::string_view op, const Value& a, const Value& b, RenderState* state);

// How json.dumps(value) writes a value.
struct JsonStyle {
  std::optional<std::string> indent;  // one level of indentation; nullopt: all in one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
  bool ensure_ascii = false;
};
std::string ToJson(const Value& value, const JsonStyle& style, RenderState* state);

// Binds the arguments of a call to `parameters`; an argument that is not given is nullopt. Fails
// for an unknown keyword, a surplus argument or fewer than `num_required` arguments.
std::vector<std::optional<Value>> BindArguments(std::string_view callee,
                                                const std::vector<std::string_view>& parameters,
                                                size_t num_required, const Arguments& arguments,
                                                RenderState* state);

}  // namespace skein::jinja
