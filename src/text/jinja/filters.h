#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/library.h"

namespace skein::jinja {

// The filters over sequences; CallFilter finds them in these tables.

using Bound = std::vector<std::optional<Value>>;
using FilterFunction = Value (*)(const Value& value, const Bound& bound, RenderState* state);

struct FilterEntry {
  std::string_view name;
  std::vector<std::string_view> parameters;
  size_t num_required;
  FilterFunction call;
};

const std::vector<FilterEntry>& SequenceFilters();

// Whether the filter is one of map, select, reject, selectattr and rejectattr, which pass their
// arguments to another filter or test.
bool IsMappingFilter(std::string_view name);
Value CallMappingFilter(std::string_view name, const Value& value, const Arguments& arguments,
                        RenderState* state);

bool IsGiven(const std::optional<Value>& argument);  // neither left out nor None
bool IsSet(const std::optional<Value>& argument);    // given and true

}  // namespace skein::jinja
