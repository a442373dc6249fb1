#include "text/jinja/filters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

Value FailUndefinedOr(const Value& value, const std::string& message, RenderState* state) {
  state->Fail(value.IsUndefined() ? value.undefined_message() : message);
  return {};
}

Value FilterDefault(const Value& value, const Bound& bound, RenderState*) {
  const bool replace = value.IsUndefined() || (IsSet(bound[1]) && !IsTrue(value));
  if (!replace) return value;
  return bound[0] ? *bound[0] : Value::Of(std::string());
}

Value FilterIndent(const Value& value, const Bound& bound, RenderState* state) {
  if (!value.Is(Kind::kString)) {
    return FailUndefinedOr(
        value, "indent needs a string, got '" + std::string(value.TypeName()) + "'", state);
  }
  std::string indentation(4, ' ');
  if (bound[0] && bound[0]->Is(Kind::kString)) {
    indentation = bound[0]->string();
  } else if (bound[0]) {
    const Value spaces = Arithmetic("*", Value::Of(std::string(" ")), *bound[0], state);
    if (!state->ok()) return {};
    indentation = spaces.string();
  }
  const bool first = IsSet(bound[1]), blank = IsSet(bound[2]);
  const std::string text = value.string() + "\n";
  std::string out = first ? indentation : "";
  bool is_first_line = true;
  for (const std::string_view line : SplitLines(text, false)) {
    if (!state->Charge(line.size() + indentation.size())) return {};
    if (!std::exchange(is_first_line, false)) {
      out += "\n";
      if (blank || !line.empty()) out += indentation;
    }
    out += line;
  }
  return Value::Of(std::move(out));
}

// Computes int(float), which rounds toward zero.
Value Truncated(double value, const Value& fallback, bool nan_is_error, RenderState* state) {
  if (std::isnan(value)) return fallback;
  if (std::isinf(value)) {
    if (!nan_is_error) return fallback;
    state->Fail("cannot convert float infinity to integer");
    return {};
  }
  if (std::fabs(value) >= 0x1p126) {
    state->FailUnsupported("an integer of more than 127 bits");
    return {};
  }
  return Value::Of(static_cast<Integer>(value));
}

// Fails for an integer of more than 128 bits, which Python would accept.
bool CheckDigits(const std::string& text, RenderState* state) {
  if (text.size() > 36 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || c == '_' || c == '-';
      })) {
    state->FailUnsupported("an integer of more than 36 characters");
  }
  return state->ok();
}

Value FilterInt(const Value& value, const Bound& bound, RenderState* state) {
  if (bound[1]) state->FailUnsupported("the base of 'int'");
  const Value fallback = bound[0] ? *bound[0] : Value::Of(Integer{0});
  if (value.IsInteger()) return Value::Of(value.integer());
  if (value.Is(Kind::kFloat)) return Truncated(value.number(), fallback, true, state);
  if (value.IsUndefined()) return FailUndefinedOr(value, "", state);
  if (!value.Is(Kind::kString)) return fallback;
  const std::string& text = value.string();
  // The text may hold digits of other scripts.
  if (!IsAscii(text)) state->FailUnsupported("'int' of text outside ASCII");
  if (!state->ok() || !CheckDigits(text, state)) return {};
  if (const auto integer = ParseInteger(text)) return Value::Of(*integer);
  const auto number = ParseFloat(text);
  return number ? Truncated(*number, fallback, false, state) : fallback;
}

Value FilterReplace(const Value& value, const Bound& bound, RenderState* state) {
  Integer count = -1;
  if (IsGiven(bound[2])) {
    if (!bound[2]->IsInteger()) state->Fail("the count of replace must be an int");
    count = state->ok() ? bound[2]->integer() : 0;
  }
  const std::string text = Str(value, state);
  const std::string from = Str(*bound[0], state), to = Str(*bound[1], state);
  return Value::Of(ReplaceText(text, from, to, count, state));
}

Value FilterTrim(const Value& value, const Bound& bound, RenderState* state) {
  const std::string text = Str(value, state);
  if (IsGiven(bound[0]) && !bound[0]->Is(Kind::kString)) {
    state->Fail("strip arg must be None or str");
    return {};
  }
  const std::string* chars = IsGiven(bound[0]) ? &bound[0]->string() : nullptr;
  return Value::Of(std::string(Strip(text, chars, true, true)));
}

Value FilterToJson(const Value& value, const Bound& bound, RenderState* state) {
  JsonStyle style;
  style.ensure_ascii = IsSet(bound[0]);
  style.sort_keys = IsSet(bound[3]);
  if (IsGiven(bound[1])) {
    const Value& indent = *bound[1];
    if (indent.Is(Kind::kString)) {
      style.indent = indent.string();
    } else if (indent.IsInteger() && indent.integer() <= 1000) {
      style.indent = std::string(static_cast<size_t>(std::max<Integer>(indent.integer(), 0)), ' ');
    } else {
      state->Fail("the indent of tojson must be a str or an int up to 1000");
    }
    style.item_separator = ",";
  }
  if (IsGiven(bound[2])) {
    const std::vector<Value> separators = Items(*bound[2], state);
    if (separators.size() != 2 || !separators[0].Is(Kind::kString) ||
        !separators[1].Is(Kind::kString)) {
      state->Fail("the separators of tojson must be two strings");
      return {};
    }
    style.item_separator = separators[0].string();
    style.key_separator = separators[1].string();
  }
  return Value::Of(ToJson(value, style, state));
}

template <Case to>
Value FilterCase(const Value& value, const Bound&, RenderState* state) {
  return Value::Of(ChangeCase(Str(value, state), to, state));
}

Value FilterSafe(const Value& value, const Bound&, RenderState* state) {
  return Value::OfMarkup(Str(value, state));
}

Value FilterString(const Value& value, const Bound&, RenderState* state) {
  return Value::Of(Str(value, state));
}

Value FilterLength(const Value& value, const Bound&, RenderState* state) {
  return Value::Of(Length(value, state));
}

const std::vector<FilterEntry>& ScalarFilters() {
  static const auto* const kFilters = new std::vector<FilterEntry>{
      {"capitalize", {}, 0, FilterCase<Case::kCapitalize>},
      {"count", {}, 0, FilterLength},
      {"d", {"default_value", "boolean"}, 0, FilterDefault},
      {"default", {"default_value", "boolean"}, 0, FilterDefault},
      {"indent", {"width", "first", "blank"}, 0, FilterIndent},
      {"int", {"default", "base"}, 0, FilterInt},
      {"length", {}, 0, FilterLength},
      {"lower", {}, 0, FilterCase<Case::kLower>},
      {"replace", {"old", "new", "count"}, 2, FilterReplace},
      {"safe", {}, 0, FilterSafe},
      {"string", {}, 0, FilterString},
      {"title", {}, 0, FilterCase<Case::kJinjaTitle>},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, FilterToJson},
      {"trim", {"chars"}, 0, FilterTrim},
      {"upper", {}, 0, FilterCase<Case::kUpper>},
  };
  return *kFilters;
}

// Filters whose result does not depend on whether the text is marked as safe, except that a safe
// text stays safe.
bool TakesMarkup(std::string_view name) {
  for (const std::string_view taking :
       {"safe", "tojson", "length", "count", "default", "d", "int"}) {
    if (name == taking) return true;
  }
  return false;
}

const FilterEntry* FindFilter(std::string_view name) {
  for (const auto* table : {&ScalarFilters(), &SequenceFilters()}) {
    for (const FilterEntry& filter : *table) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace

bool IsFilter(std::string_view name) {
  return IsMappingFilter(name) || FindFilter(name) != nullptr;
}

Value CallFilter(std::string_view name, const Value& value, const Arguments& arguments,
                 RenderState* state) {
  RenderState::Level level(state);
  if (!state->ok()) return {};
  if (value.IsMarkup() && !TakesMarkup(name)) {
    state->FailUnsupported("filter '" + std::string(name) + "' of safe text");
    return {};
  }
  if (IsMappingFilter(name)) return CallMappingFilter(name, value, arguments, state);
  const FilterEntry* filter = FindFilter(name);
  const Bound bound =
      BindArguments(name, filter->parameters, filter->num_required, arguments, state);
  return state->ok() ? filter->call(value, bound, state) : Value();
}

}  // namespace skein::jinja
