#include <algorithm>
#include <string>

#include "text/jinja/filters.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

// Follows a path such as "a.b.0" from `item`. Each part is looked up as a subscript.
Value FollowPath(Value item, const Value& path, const std::optional<Value>& fallback,
                 RenderState* state) {
  if (path.Is(Kind::kNone)) return item;
  if (!path.Is(Kind::kString)) return GetItem(item, path, state);
  for (const std::string_view part : SplitText(path.string(), ".", -1)) {
    const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    const auto index = is_number ? ParseInteger(part) : std::nullopt;
    item = GetItem(item, index ? Value::Of(*index) : Value::Of(std::string(part)), state);
    if (IsGiven(fallback) && item.IsUndefined()) item = *fallback;
  }
  return item;
}

Value IgnoreCase(Value value, const std::optional<Value>& case_sensitive, RenderState* state) {
  if (IsSet(case_sensitive) || !value.Is(Kind::kString)) return value;
  return Value::Of(ChangeCase(value.string(), Case::kLower, state));
}

using Keyed = std::pair<std::vector<Value>, Value>;  // the keys to sort by, and the item

// Sorts stably. Equal items keep their order even if `reverse` is set.
std::vector<Value> SortedByKey(std::vector<Keyed> items, bool reverse, RenderState* state) {
  const auto less = [state](const Keyed& a, const Keyed& b) {
    for (size_t i = 0; i < a.first.size() && state->ok(); ++i) {
      if (Equal(a.first[i], b.first[i], state)) continue;
      return Less(a.first[i], b.first[i], state);
    }
    return false;
  };
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(b, a) : less(a, b);
  });
  std::vector<Value> sorted;
  for (Keyed& item : items) sorted.push_back(std::move(item.second));
  return sorted;
}

Value FilterSort(const Value& value, const Bound& bound, RenderState* state) {
  const auto& [reverse, case_sensitive, attribute] = std::tie(bound[0], bound[1], bound[2]);
  std::vector<Value> paths;
  if (attribute && attribute->Is(Kind::kString)) {
    for (const auto part : SplitText(attribute->string(), ",", -1)) {
      paths.push_back(Value::Of(std::string(part)));
    }
  } else {
    paths.push_back(attribute ? *attribute : Value::OfNone());
  }
  std::vector<Keyed> items;
  for (Value& item : Items(value, state)) {
    std::vector<Value> keys;
    for (const Value& path : paths) {
      keys.push_back(IgnoreCase(FollowPath(item, path, {}, state), case_sensitive, state));
    }
    items.emplace_back(std::move(keys), std::move(item));
  }
  return MakeSequence(SequenceKind::kList, SortedByKey(std::move(items), IsSet(reverse), state),
                      state);
}

Value FilterDictsort(const Value& value, const Bound& bound, RenderState* state) {
  if (!value.Is(Kind::kDict)) {
    state->Fail("dictsort needs a mapping, got '" + std::string(value.TypeName()) + "'");
    return {};
  }
  const std::string by = bound[1] ? Str(*bound[1], state) : "key";
  if (by != "key" && by != "value") {
    state->Fail("You can only sort by either \"key\" or \"value\"");
    return {};
  }
  std::vector<Keyed> items;
  for (const auto& [key, item] : value.dict().items) {
    items.emplace_back(std::vector{IgnoreCase(by == "key" ? key : item, bound[0], state)},
                       MakeSequence(SequenceKind::kTuple, {key, item}, state));
  }
  return MakeSequence(SequenceKind::kList, SortedByKey(std::move(items), IsSet(bound[2]), state),
                      state);
}

Value FilterUnique(const Value& value, const Bound& bound, RenderState* state) {
  std::vector<Value> seen, kept;
  for (Value& item : Items(value, state)) {
    const Value path = bound[1] ? *bound[1] : Value::OfNone();
    Value key = IgnoreCase(FollowPath(item, path, {}, state), bound[0], state);
    if (!state->ok() || !CheckHashable(key, state)) return {};
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const Value& other) { return Equal(key, other, state); });
    if (known) continue;
    seen.push_back(std::move(key));
    kept.push_back(std::move(item));
  }
  return MakeSequence(SequenceKind::kIterator, std::move(kept), state);
}

Value FilterJoin(const Value& value, const Bound& bound, RenderState* state) {
  const std::string separator = bound[0] ? Str(*bound[0], state) : "";
  std::string text;
  bool first = true;
  for (const Value& item : Items(value, state)) {
    if (!std::exchange(first, false)) text += separator;
    text += Str(IsGiven(bound[1]) ? FollowPath(item, *bound[1], {}, state) : item, state);
    if (!state->Charge(separator.size())) return {};
  }
  return Value::Of(std::move(text));
}

Value FilterFirst(const Value& value, const Bound&, RenderState* state) {
  const std::vector<Value> items = Items(value, state);
  MarkPartlyUsed(value);
  if (!items.empty()) return items.front();
  return Value::UndefinedBecause("No first item, sequence was empty.");
}

Value FilterLast(const Value& value, const Bound&, RenderState* state) {
  if (value.Is(Kind::kSequence) && value.sequence().kind == SequenceKind::kIterator) {
    state->Fail("'generator' object is not reversible");
    return {};
  }
  const std::vector<Value> items = Items(value, state);
  if (!items.empty()) return items.back();
  return Value::UndefinedBecause("No last item, sequence was empty.");
}

Value FilterReverse(const Value& value, const Bound&, RenderState* state) {
  if (value.Is(Kind::kString)) {
    return GetSlice(value, Value::OfNone(), Value::OfNone(), Value::Of(Integer{-1}), state);
  }
  const bool from_iterator =
      value.Is(Kind::kSequence) && value.sequence().kind == SequenceKind::kIterator;
  std::vector<Value> items = Items(value, state);
  std::reverse(items.begin(), items.end());
  return MakeSequence(from_iterator ? SequenceKind::kList : SequenceKind::kIterator,
                      std::move(items), state);
}

Value FilterItems(const Value& value, const Bound&, RenderState* state) {
  if (!value.Is(Kind::kDict) && !value.IsUndefined()) {
    state->Fail("Can only get item pairs from a mapping.");
    return {};
  }
  std::vector<Value> pairs;
  if (value.Is(Kind::kDict)) {
    for (const auto& [key, item] : value.dict().items) {
      pairs.push_back(MakeSequence(SequenceKind::kTuple, {key, item}, state));
    }
  }
  return MakeSequence(SequenceKind::kIterator, std::move(pairs), state);
}

Value FilterList(const Value& value, const Bound&, RenderState* state) {
  return MakeSequence(SequenceKind::kList, Items(value, state), state);
}

Value CallMap(const Value& value, const Arguments& arguments, RenderState* state) {
  std::vector<Value> mapped;
  Arguments rest = arguments;
  std::optional<std::string> filter;
  std::optional<Value> path, fallback;
  if (!arguments.positional.empty()) {
    filter = Str(arguments.positional[0], state);
    rest.positional.erase(rest.positional.begin());
  } else {
    for (const auto& [name, argument] : arguments.keywords) {
      if (name != "attribute" && name != "default") {
        state->Fail("Unexpected keyword argument '" + name + "'");
      }
      (name == "attribute" ? path : fallback) = argument;
    }
    if (!path) state->Fail("map requires a filter argument");
  }
  for (const Value& item : Items(value, state)) {
    if (!state->ok() || !state->Step()) return {};
    mapped.push_back(filter ? CallFilter(*filter, item, rest, state)
                            : FollowPath(item, *path, fallback, state));
  }
  return MakeSequence(SequenceKind::kIterator, std::move(mapped), state);
}

Value CallSelect(const Value& value, const Arguments& arguments, bool keep, bool by_attribute,
                 RenderState* state) {
  const size_t name_at = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty()) {
    state->Fail("Missing parameter for attribute name");
    return {};
  }
  Arguments rest = arguments;
  const bool has_test = arguments.positional.size() > name_at;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                      name_at + 1, rest.positional.size())));
  std::vector<Value> selected;
  for (Value& item : Items(value, state)) {
    if (!state->ok() || !state->Step()) return {};
    const Value tested = by_attribute ? FollowPath(item, arguments.positional[0], {}, state) : item;
    const bool holds = has_test
                           ? CallTest(arguments.positional[name_at].string(), tested, rest, state)
                           : IsTrue(tested);
    if (holds == keep) selected.push_back(std::move(item));
  }
  return MakeSequence(SequenceKind::kIterator, std::move(selected), state);
}

}  // namespace

bool IsGiven(const std::optional<Value>& argument) {
  return argument.has_value() && !argument->Is(Kind::kNone);
}

bool IsSet(const std::optional<Value>& argument) {
  return argument.has_value() && IsTrue(*argument);
}

const std::vector<FilterEntry>& SequenceFilters() {
  static const auto* const kFilters = new std::vector<FilterEntry>{
      {"first", {}, 0, FilterFirst},
      {"last", {}, 0, FilterLast},
      {"list", {}, 0, FilterList},
      {"items", {}, 0, FilterItems},
      {"reverse", {}, 0, FilterReverse},
      {"join", {"d", "attribute"}, 0, FilterJoin},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, FilterSort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, FilterDictsort},
      {"unique", {"case_sensitive", "attribute"}, 0, FilterUnique},
  };
  return *kFilters;
}

bool IsMappingFilter(std::string_view name) {
  return name == "map" || name == "select" || name == "reject" || name == "selectattr" ||
         name == "rejectattr";
}

Value CallMappingFilter(std::string_view name, const Value& value, const Arguments& arguments,
                        RenderState* state) {
  if (!IsTrue(value)) return MakeSequence(SequenceKind::kIterator, {}, state);
  if (name == "map") return CallMap(value, arguments, state);
  return CallSelect(value, arguments, name.starts_with("select"), name.ends_with("attr"), state);
}

}  // namespace skein::jinja
