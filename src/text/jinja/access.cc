#include <algorithm>
#include <array>
#include <string>

#include "text/jinja/library.h"
#include "text/jinja/loop.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

// All attributes of Python's types that templates use. The lists are complete, so that an attribute
// that exists in Python and is not implemented here is told from one that does not exist. Sorted.
constexpr std::array<std::string_view, 47> kStrAttributes = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::array<std::string_view, 11> kDictAttributes = {
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};
constexpr std::array<std::string_view, 11> kListAttributes = {
    "append", "clear", "copy",   "count",   "extend", "index",
    "insert", "pop",   "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 2> kTupleAttributes = {"count", "index"};
constexpr std::array<std::string_view, 15> kOtherAttributes = {
    "as_integer_ratio", "bit_count", "bit_length", "close", "conjugate",
    "denominator",      "fromhex",   "gi_running", "hex",   "imag",
    "is_integer",       "mapping",   "numerator",  "real",  "throw"};

template <size_t n>
bool Has(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool HasPythonAttribute(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::kString:
      return Has(kStrAttributes, name);
    case Kind::kDict:
      return Has(kDictAttributes, name);
    case Kind::kSequence:
      if (value.sequence().kind == SequenceKind::kList) return Has(kListAttributes, name);
      if (value.sequence().kind == SequenceKind::kTuple) return Has(kTupleAttributes, name);
      return Has(kOtherAttributes, name) || name == "start" || name == "stop" || name == "step" ||
             name == "send" || Has(kTupleAttributes, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return Has(kOtherAttributes, name);
    case Kind::kMacro:
      return name == "name" || name == "arguments" || name == "catch_kwargs" ||
             name == "catch_varargs" || name == "caller";
    default:
      return false;
  }
}

Value NoAttribute(const Value& value, std::string_view name) {
  return Value::UndefinedBecause("'" + std::string(value.TypeName()) +
                                 " object' has no attribute '" + std::string(name) + "'");
}

// The result of Python's getattr(value, name); undefined if Python raises AttributeError.
Value PythonAttribute(const Value& value, std::string_view name, RenderState* state) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) {
    state->FailUnsupported("attribute '" + std::string(name) + "'");
    return {};
  }
  switch (value.kind()) {
    case Kind::kNamespace:
      for (const auto& [known, held] : value.name_space()->attributes) {
        if (known == name) return held;
      }
      break;
    case Kind::kLoop:
      return value.loop()->Attribute(name, state);
    default:
      if (HasPythonAttribute(value, name)) {
        if (!IsMethod(name)) {
          state->FailUnsupported("attribute '" + std::string(name) + "' of '" +
                                 std::string(value.TypeName()) + "'");
          return {};
        }
        return Value::Of(std::make_shared<const Method>(Method{value, std::string(name)}));
      }
  }
  return NoAttribute(value, name);
}

// The result of value[key]; undefined if Python raises an error.
Value PythonItem(const Value& value, const Value& key, RenderState* state) {
  if (value.Is(Kind::kDict)) {
    if (key.Is(Kind::kDict) ||
        (key.Is(Kind::kSequence) && key.sequence().kind != SequenceKind::kTuple)) {
      return NoAttribute(value, "(unhashable)");
    }
    const Value* found = value.dict().Find(key, state);
    return found != nullptr ? *found
                            : NoAttribute(value, key.Is(Kind::kString) ? key.string() : "");
  }
  if (!key.IsInteger()) return NoAttribute(value, key.Is(Kind::kString) ? key.string() : "");
  Integer index = key.integer();
  if (value.Is(Kind::kString)) {
    if (value.IsMarkup()) state->FailUnsupported("a character of safe text");
    state->Charge(value.string().size() / 16);
    const auto length = static_cast<Integer>(NumCodePoints(value.string()));
    if (index < 0) index += length;
    if (index >= 0 && index < length) {
      const size_t start = OffsetOfCodePoint(value.string(), static_cast<size_t>(index));
      size_t end = start;
      NextCodePoint(value.string(), &end);
      return Value::Of(value.string().substr(start, end - start));
    }
  } else if (value.Is(Kind::kSequence)) {
    const SequenceKind kind = value.sequence().kind;
    const bool indexable =
        kind == SequenceKind::kList || kind == SequenceKind::kTuple || kind == SequenceKind::kRange;
    const auto length = static_cast<Integer>(value.sequence().items.size());
    if (index < 0) index += length;
    if (indexable && index >= 0 && index < length) {
      return value.sequence().items[static_cast<size_t>(index)];
    }
  }
  return Value::UndefinedBecause(std::string(value.TypeName()) + " object has no element " +
                                 IntegerText(key.integer()));
}

}  // namespace

Value GetAttribute(const Value& value, std::string_view name, RenderState* state) {
  if (!state->ok()) return {};
  if (value.IsUndefined()) {
    state->Fail(value.undefined_message());
    return {};
  }
  Value attribute = PythonAttribute(value, name, state);
  if (!attribute.IsUndefined() || !state->ok() || !value.Is(Kind::kDict)) return attribute;
  const Value* item = value.dict().Find(name, state);
  return item != nullptr ? *item : attribute;
}

Value GetItem(const Value& value, const Value& key, RenderState* state) {
  if (!state->ok()) return {};
  if (value.IsUndefined()) {
    state->Fail(value.undefined_message());
    return {};
  }
  if (value.Is(Kind::kDict) && key.Is(Kind::kString)) {
    if (const Value* found = value.dict().Find(key.string(), state)) return *found;
  }
  return key.Is(Kind::kString) ? PythonAttribute(value, key.string(), state)
                               : PythonItem(value, key, state);
}

namespace {

// The half-open range of a slice over `length` items, with Python's bounds.
struct Walk {
  Integer start, stop, step;
};

Walk BoundWalk(const Value& start, const Value& stop, const Value& step, Integer length) {
  Walk walk{};
  walk.step = step.Is(Kind::kNone) ? 1 : step.integer();
  const bool backwards = walk.step < 0;
  const Integer lowest = backwards ? -1 : 0;
  const Integer highest = backwards ? length - 1 : length;
  const auto bound = [&](const Value& given, Integer fallback) {
    if (given.Is(Kind::kNone)) return fallback;
    Integer at = given.integer();
    if (at < 0) at += length;
    return std::clamp(at, lowest, highest);
  };
  walk.start = bound(start, backwards ? highest : lowest);
  walk.stop = bound(stop, backwards ? lowest : highest);
  return walk;
}

}  // namespace

Value GetSlice(const Value& value, const Value& start, const Value& stop, const Value& step,
               RenderState* state) {
  if (value.IsUndefined()) state->Fail(value.undefined_message());
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->Is(Kind::kNone) && !bound->IsInteger()) {
      state->Fail("slice indices must be integers or None");
    }
  }
  if (step.IsInteger() && step.integer() == 0) state->Fail("slice step cannot be zero");
  if (value.IsMarkup()) state->FailUnsupported("a slice of safe text");
  const bool is_text = value.Is(Kind::kString);
  const bool sliceable =
      is_text || (value.Is(Kind::kSequence) && (value.sequence().kind == SequenceKind::kList ||
                                                value.sequence().kind == SequenceKind::kTuple ||
                                                value.sequence().kind == SequenceKind::kRange));
  if (!sliceable) {
    state->Fail("'" + std::string(value.TypeName()) + "' object cannot be sliced");
  }
  if (!state->ok()) return {};
  std::vector<size_t> offsets;  // the offset of each character, and the end
  if (is_text) {
    if (!state->Charge(value.string().size() * sizeof(size_t))) return {};
    for (size_t pos = 0; pos < value.string().size(); NextCodePoint(value.string(), &pos)) {
      offsets.push_back(pos);
    }
    offsets.push_back(value.string().size());
  }
  const auto length =
      static_cast<Integer>(is_text ? offsets.size() - 1 : value.sequence().items.size());
  const Walk walk = BoundWalk(start, stop, step, length);
  std::string text;
  std::vector<Value> items;
  for (Integer i = walk.start; walk.step > 0 ? i < walk.stop : i > walk.stop; i += walk.step) {
    const auto index = static_cast<size_t>(i);
    if (is_text) {
      text += value.string().substr(offsets[index], offsets[index + 1] - offsets[index]);
    } else {
      items.push_back(value.sequence().items[index]);
    }
    // A step may be huge. Stopping here keeps the sum from overflowing.
    if (walk.step > length || walk.step < -length) break;
  }
  if (is_text) return Value::Of(std::move(text));
  return MakeSequence(value.sequence().kind, std::move(items), state);
}

}  // namespace skein::jinja
