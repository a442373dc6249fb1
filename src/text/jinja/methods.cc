#include <algorithm>
#include <array>
#include <string>

#include "text/jinja/library.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

using Bound = std::vector<std::optional<Value>>;

// The methods that the sandbox lets templates see but not call.
constexpr std::array<std::string_view, 12> kMutators = {
    "append", "clear", "extend",     "insert", "pop",     "popitem",
    "remove", "sort",  "setdefault", "update", "reverse", "fromkeys"};

const std::string* TextOf(const Value& value, RenderState* state) {
  if (value.Is(Kind::kString)) return &value.string();
  state->Fail("expected a str, got '" + std::string(value.TypeName()) + "'");
  return nullptr;
}

// Reads a string argument. If it is None or left out, *text becomes null.
bool OptionalText(const std::optional<Value>& value, const std::string** text, RenderState* state) {
  *text = nullptr;
  if (!value || value->Is(Kind::kNone)) return true;
  *text = TextOf(*value, state);
  return *text != nullptr;
}

Integer CountOf(const std::optional<Value>& value, RenderState* state) {
  if (!value) return -1;
  if (value->IsInteger()) return value->integer();
  state->Fail("expected an int, got '" + std::string(value->TypeName()) + "'");
  return -1;
}

Value TextList(const std::vector<std::string_view>& parts, RenderState* state) {
  std::vector<Value> items;
  for (const std::string_view part : parts) {
    if (!state->Charge(part.size() + sizeof(Value))) return {};
    items.push_back(Value::Of(std::string(part)));
  }
  return MakeSequence(SequenceKind::kList, std::move(items), state);
}

Value StripMethod(const std::string& text, const Bound& bound, bool left, bool right,
                  RenderState* state) {
  const std::string* chars = nullptr;
  if (!OptionalText(bound[0], &chars, state)) return {};
  return Value::Of(std::string(Strip(text, chars, left, right)));
}

Value SplitMethod(const std::string& text, const Bound& bound, bool from_right,
                  RenderState* state) {
  const std::string* separator = nullptr;
  if (!OptionalText(bound[0], &separator, state)) return {};
  if (separator == nullptr && from_right) state->FailUnsupported("'rsplit' without a separator");
  if (separator != nullptr && separator->empty()) state->Fail("empty separator");
  const Integer max_splits = CountOf(bound[1], state);
  if (!state->ok()) return {};
  if (separator == nullptr) return TextList(SplitSpace(text, max_splits), state);
  return TextList(SplitText(text, *separator, max_splits, from_right), state);
}

Value AffixMethod(const std::string& text, const Value& affix, bool at_start, RenderState* state) {
  const auto matches = [&](const Value& one) {
    const std::string* part = TextOf(one, state);
    if (part == nullptr) return false;
    return at_start ? text.starts_with(*part) : text.ends_with(*part);
  };
  if (!affix.Is(Kind::kSequence) || affix.sequence().kind != SequenceKind::kTuple) {
    return Value::Of(matches(affix));
  }
  const auto& items = affix.sequence().items;
  return Value::Of(std::any_of(items.begin(), items.end(), matches));
}

Value FindMethod(const std::string& text, const Value& needle, RenderState* state) {
  const std::string* part = TextOf(needle, state);
  if (part == nullptr) return {};
  const size_t at = FindText(text, *part);
  if (at == std::string::npos) return Value::Of(Integer{-1});
  return Value::Of(static_cast<Integer>(NumCodePoints(std::string_view(text).substr(0, at))));
}

Value JoinMethod(const std::string& separator, const Value& iterable, RenderState* state) {
  std::string text;
  bool first = true;
  for (const Value& item : Items(iterable, state)) {
    const std::string* part = TextOf(item, state);
    if (part == nullptr || !state->Charge(part->size() + separator.size())) return {};
    if (!std::exchange(first, false)) text += separator;
    text += *part;
  }
  return Value::Of(std::move(text));
}

using StrMethod = Value (*)(const std::string&, const Bound&, RenderState*);
struct StrMethodEntry {
  std::string_view name;
  std::vector<std::string_view> parameters;
  size_t num_required;
  StrMethod call;
};

const std::vector<StrMethodEntry>& StrMethods() {
  using S = const std::string&;
  using B = const Bound&;
  using R = RenderState*;
  static const auto* const kMethods = new std::vector<StrMethodEntry>{
      {"strip", {"chars"}, 0, [](S s, B b, R r) { return StripMethod(s, b, true, true, r); }},
      {"lstrip", {"chars"}, 0, [](S s, B b, R r) { return StripMethod(s, b, true, false, r); }},
      {"rstrip", {"chars"}, 0, [](S s, B b, R r) { return StripMethod(s, b, false, true, r); }},
      {"split", {"sep", "maxsplit"}, 0, [](S s, B b, R r) { return SplitMethod(s, b, false, r); }},
      {"rsplit", {"sep", "maxsplit"}, 0, [](S s, B b, R r) { return SplitMethod(s, b, true, r); }},
      {"splitlines",
       {"keepends"},
       0,
       [](S s, B b, R r) { return TextList(SplitLines(s, b[0] && IsTrue(*b[0])), r); }},
      {"startswith", {"prefix"}, 1, [](S s, B b, R r) { return AffixMethod(s, *b[0], true, r); }},
      {"endswith", {"suffix"}, 1, [](S s, B b, R r) { return AffixMethod(s, *b[0], false, r); }},
      {"replace",
       {"old", "new", "count"},
       2,
       [](S s, B b, R r) {
         const std::string* from = TextOf(*b[0], r);
         const std::string* to = TextOf(*b[1], r);
         const Integer count = CountOf(b[2], r);
         return r->ok() ? Value::Of(ReplaceText(s, *from, *to, count, r)) : Value();
       }},
      {"upper", {}, 0, [](S s, B, R r) { return Value::Of(ChangeCase(s, Case::kUpper, r)); }},
      {"lower", {}, 0, [](S s, B, R r) { return Value::Of(ChangeCase(s, Case::kLower, r)); }},
      {"title", {}, 0, [](S s, B, R r) { return Value::Of(ChangeCase(s, Case::kTitle, r)); }},
      {"capitalize",
       {},
       0,
       [](S s, B, R r) { return Value::Of(ChangeCase(s, Case::kCapitalize, r)); }},
      {"find", {"sub"}, 1, [](S s, B b, R r) { return FindMethod(s, *b[0], r); }},
      {"join", {"iterable"}, 1, [](S s, B b, R r) { return JoinMethod(s, *b[0], r); }},
  };
  return *kMethods;
}

Value CallStrMethod(const std::string& text, std::string_view name, const Arguments& arguments,
                    RenderState* state) {
  for (const StrMethodEntry& method : StrMethods()) {
    if (method.name != name) continue;
    const Bound bound =
        BindArguments(name, method.parameters, method.num_required, arguments, state);
    if (!state->Charge(text.size() / 4) || !state->ok()) return {};
    return method.call(text, bound, state);
  }
  state->FailUnsupported("method '" + std::string(name) + "' of 'str'");
  return {};
}

Value CallDictMethod(const Dict& dict, std::string_view name, const Arguments& arguments,
                     RenderState* state) {
  if (name == "get") {
    const Bound bound = BindArguments("get", {"key", "default"}, 1, arguments, state);
    if (!state->ok() || !CheckHashable(*bound[0], state)) return {};
    if (const Value* found = dict.Find(*bound[0], state)) return *found;
    return bound[1] ? *bound[1] : Value::OfNone();
  }
  if (name != "items" && name != "keys" && name != "values") {
    state->FailUnsupported("method '" + std::string(name) + "' of 'dict'");
    return {};
  }
  BindArguments(name, {}, 0, arguments, state);
  std::vector<Value> items;
  for (const auto& [key, value] : dict.items) {
    if (!state->ok()) return {};
    items.push_back(name == "keys"     ? key
                    : name == "values" ? value
                                       : MakeSequence(SequenceKind::kTuple, {key, value}, state));
  }
  const SequenceKind kind = name == "keys"     ? SequenceKind::kKeys
                            : name == "values" ? SequenceKind::kValues
                                               : SequenceKind::kItems;
  return MakeSequence(kind, std::move(items), state);
}

}  // namespace

bool IsMethod(std::string_view name) {
  for (const std::string_view other : {"items", "keys", "values", "get"}) {
    if (name == other) return true;
  }
  if (std::find(kMutators.begin(), kMutators.end(), name) != kMutators.end()) return true;
  const auto& methods = StrMethods();
  return std::any_of(methods.begin(), methods.end(),
                     [name](const auto& method) { return method.name == name; });
}

Value CallMethod(const Value& receiver, std::string_view name, const Arguments& arguments,
                 RenderState* state) {
  if (!receiver.Is(Kind::kString) &&
      std::find(kMutators.begin(), kMutators.end(), name) != kMutators.end()) {
    state->Fail("access to attribute '" + std::string(name) + "' of '" +
                std::string(receiver.TypeName()) + "' object is unsafe.");
    return {};
  }
  switch (receiver.kind()) {
    case Kind::kString:
      if (receiver.IsMarkup()) {
        state->FailUnsupported("method '" + std::string(name) + "' of safe text");
        return {};
      }
      return CallStrMethod(receiver.string(), name, arguments, state);
    case Kind::kDict:
      return CallDictMethod(receiver.dict(), name, arguments, state);
    default:
      state->FailUnsupported("method '" + std::string(name) + "'");
      return {};
  }
}

std::vector<std::optional<Value>> BindArguments(std::string_view callee,
                                                const std::vector<std::string_view>& parameters,
                                                size_t num_required, const Arguments& arguments,
                                                RenderState* state) {
  std::vector<std::optional<Value>> bound(parameters.size());
  const std::string name(callee);
  if (arguments.positional.size() > parameters.size()) {
    state->Fail(name + " takes at most " + std::to_string(parameters.size()) + " arguments, got " +
                std::to_string(arguments.positional.size()));
    return bound;
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [keyword, value] : arguments.keywords) {
    const auto found = std::find(parameters.begin(), parameters.end(), keyword);
    auto* slot = found != parameters.end() ? &bound[static_cast<size_t>(found - parameters.begin())]
                                           : nullptr;
    if (slot == nullptr) {
      state->Fail(name + " takes no keyword argument '" + keyword + "'");
    } else if (*slot) {
      state->Fail(name + " got two values for argument '" + keyword + "'");
    } else {
      *slot = value;
    }
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (!bound[i]) {
      state->Fail(name + " is missing its argument '" + std::string(parameters[i]) + "'");
      bound[i] = Value();
    }
  }
  return bound;
}

}  // namespace skein::jinja
