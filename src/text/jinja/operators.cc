#include <cmath>

#include "text/jinja/library.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

Value FailOperands(std::string_view op, const Value& a, const Value& b, RenderState* state) {
  for (const Value* value : {&a, &b}) {
    if (value->IsUndefined()) state->Fail(value->undefined_message());
  }
  state->Fail("unsupported operand type(s) for " + std::string(op) + ": '" +
              std::string(a.TypeName()) + "' and '" + std::string(b.TypeName()) + "'");
  return {};
}

Value FailOverflow(RenderState* state) {
  state->FailUnsupported("an integer of more than 127 bits");
  return {};
}

Value FailZero(RenderState* state) {
  state->Fail("division by zero");
  return {};
}

Value IntegerArithmetic(char op, Integer a, Integer b, RenderState* state) {
  Integer result = 0;
  switch (op) {
    case '+':
      return __builtin_add_overflow(a, b, &result) ? FailOverflow(state) : Value::Of(result);
    case '-':
      return __builtin_sub_overflow(a, b, &result) ? FailOverflow(state) : Value::Of(result);
    case '*':
      return __builtin_mul_overflow(a, b, &result) ? FailOverflow(state) : Value::Of(result);
    default:
      break;
  }
  if (b == 0) return FailZero(state);
  // Python's remainder has the divisor's sign.
  const Integer remainder = b == -1 ? 0 : a % b;
  return Value::Of(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

Value FloatArithmetic(char op, double a, double b, RenderState* state) {
  switch (op) {
    case '+':
      return Value::Of(a + b);
    case '-':
      return Value::Of(a - b);
    case '*':
      return Value::Of(a * b);
    default:
      break;
  }
  if (b == 0) return FailZero(state);
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return Value::Of(std::copysign(0.0, b));
  return Value::Of((remainder < 0) != (b < 0) ? remainder + b : remainder);
}

bool IsPlainSequence(const Value& value) {
  return value.Is(Kind::kSequence) && (value.sequence().kind == SequenceKind::kList ||
                                       value.sequence().kind == SequenceKind::kTuple);
}

Value Repeat(const Value& value, Integer count, RenderState* state) {
  const size_t size = value.Is(Kind::kString) ? value.string().size()
                                              : value.sequence().items.size() * sizeof(Value);
  const Integer total = count > 0 && size > 0 ? count : 0;
  if (total > 0 && total > static_cast<Integer>(state->limits().max_work / size)) {
    state->Charge(state->limits().max_work + 1);
    return {};
  }
  if (!state->Charge(static_cast<size_t>(total) * size)) return {};
  if (value.Is(Kind::kString)) {
    std::string text;
    for (Integer i = 0; i < total; ++i) text += value.string();
    return Value::Of(std::move(text));
  }
  std::vector<Value> items;
  const auto& source = value.sequence().items;
  for (Integer i = 0; i < total; ++i) items.insert(items.end(), source.begin(), source.end());
  return MakeSequence(value.sequence().kind, std::move(items), state);
}

Value Concatenate(const Value& a, const Value& b, RenderState* state) {
  if (a.Is(Kind::kString)) {
    state->Charge(a.string().size() + b.string().size());
    return state->ok() ? Value::Of(a.string() + b.string()) : Value();
  }
  std::vector<Value> items = a.sequence().items;
  items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
  return MakeSequence(a.sequence().kind, std::move(items), state);
}

}  // namespace

Value Arithmetic(std::string_view op, const Value& a, const Value& b, RenderState* state) {
  if (a.IsNumber() && b.IsNumber()) {
    return a.IsInteger() && b.IsInteger()
               ? IntegerArithmetic(op[0], a.integer(), b.integer(), state)
               : FloatArithmetic(op[0], a.number(), b.number(), state);
  }
  if (a.IsMarkup() || b.IsMarkup()) {
    state->FailUnsupported("'" + std::string(op) + "' with safe text");
    return {};
  }
  const auto is_text_or_list = [](const Value& value) {
    return value.Is(Kind::kString) || IsPlainSequence(value);
  };
  if (op == "+" && is_text_or_list(a) && a.TypeName() == b.TypeName()) {
    return Concatenate(a, b, state);
  }
  if (op == "*" && is_text_or_list(a) && b.IsInteger()) return Repeat(a, b.integer(), state);
  if (op == "*" && is_text_or_list(b) && a.IsInteger()) return Repeat(b, a.integer(), state);
  if (op == "%" && a.Is(Kind::kString)) {
    state->FailUnsupported("'%' formatting of a string");
    return {};
  }
  const bool views = a.Is(Kind::kSequence) && b.Is(Kind::kSequence) && op == "-";
  if (views) state->FailUnsupported("'-' between sequences");
  return FailOperands(op, a, b, state);
}

Value Negate(const Value& value, RenderState* state) {
  if (value.IsInteger()) return IntegerArithmetic('-', 0, value.integer(), state);
  if (value.Is(Kind::kFloat)) return Value::Of(-value.number());
  state->Fail(value.IsUndefined()
                  ? value.undefined_message()
                  : "bad operand type for unary -: '" + std::string(value.TypeName()) + "'");
  return {};
}

bool Compare(std::string_view op, const Value& a, const Value& b, RenderState* state) {
  if (op == "==") return Equal(a, b, state);
  if (op == "!=") return !Equal(a, b, state);
  if (op == "in") return Contains(b, a, state);
  if (op == "not in") return !Contains(b, a, state);
  if (op == "<") return Less(a, b, state);
  if (op == ">") return Less(b, a, state);
  // Negating the opposite comparison would be wrong: a NaN is neither less nor greater.
  const bool less = op == "<=" ? Less(a, b, state) : Less(b, a, state);
  return less || (state->ok() && Equal(a, b, state));
}

}  // namespace skein::jinja
