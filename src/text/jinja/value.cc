#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

bool EqualItems(const std::vector<Value>& a, const std::vector<Value>& b, RenderState* state) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a[i], b[i], state) || !state->ok()) return false;
  }
  return true;
}

bool EqualDicts(const Dict& a, const Dict& b, RenderState* state) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.Find(key, state);
    if (other == nullptr || !Equal(value, *other, state) || !state->ok()) return false;
  }
  return true;
}

bool IsKind(const Value& value, SequenceKind kind) {
  return value.Is(Kind::kSequence) && value.sequence().kind == kind;
}

std::string Enclosed(const std::vector<Value>& items, std::string_view open, std::string_view close,
                     RenderState* state) {
  std::string out(open);
  for (size_t i = 0; i < items.size() && state->ok(); ++i) {
    if (i > 0) out += ", ";
    const std::string item = Repr(items[i], state);
    state->Charge(item.size() + 2);
    out += item;
  }
  return out.append(close);
}

std::string SequenceRepr(const Sequence& sequence, RenderState* state) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      return Enclosed(sequence.items, "[", "]", state);
    case SequenceKind::kTuple:
      return Enclosed(sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")", state);
    case SequenceKind::kKeys:
      return Enclosed(sequence.items, "dict_keys([", "])", state);
    case SequenceKind::kValues:
      return Enclosed(sequence.items, "dict_values([", "])", state);
    case SequenceKind::kItems:
      return Enclosed(sequence.items, "dict_items([", "])", state);
    case SequenceKind::kRange:
      state->FailUnsupported("printing a range");
      return {};
    case SequenceKind::kIterator:
      state->FailUnsupported("printing an iterator (add '| list')");
      return {};
  }
  return {};
}

}  // namespace

Value Value::UndefinedNamed(std::string_view name) {
  return UndefinedBecause("'" + std::string(name) + "' is undefined");
}

Value Value::UndefinedBecause(std::string message) {
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(message))}));
}

Value Value::Of(std::string value) {
  return Value(Data(std::make_shared<const std::string>(std::move(value))));
}

Value Value::OfMarkup(std::string value) {
  Value markup = Of(std::move(value));
  markup.is_markup_ = true;
  return markup;
}

const std::string& Value::undefined_message() const {
  static const std::string kUnnamed = "value is undefined";
  const auto& message = std::get<Undefined>(data_).message;
  return message ? *message : kUnnamed;
}

Integer Value::integer() const {
  return Is(Kind::kBool) ? static_cast<Integer>(boolean()) : std::get<Integer>(data_);
}

double Value::number() const {
  return Is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(integer());
}

int Value::Depth() const {
  if (Is(Kind::kSequence)) return sequence().depth;
  if (Is(Kind::kDict)) return dict().depth;
  if (Is(Kind::kMethod)) return method().receiver.Depth();
  return 0;
}

std::string_view Value::TypeName() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kSequence:
      switch (sequence().kind) {
        case SequenceKind::kList:
          return "list";
        case SequenceKind::kTuple:
          return "tuple";
        case SequenceKind::kRange:
          return "range";
        case SequenceKind::kKeys:
          return "dict_keys";
        case SequenceKind::kValues:
          return "dict_values";
        case SequenceKind::kItems:
          return "dict_items";
        case SequenceKind::kIterator:
          return "generator";
      }
      return "list";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kMethod:
      return "method";
    case Kind::kFunction:
      return "function";
  }
  return "object";
}

const Value* Dict::Find(const Value& key, RenderState* state) const {
  if (key.Is(Kind::kString)) return Find(key.string(), state);
  state->Charge(items.size());
  for (const auto& [candidate, value] : items) {
    if (Equal(candidate, key, state)) return &value;
  }
  return nullptr;
}

const Value* Dict::Find(std::string_view key, RenderState* state) const {
  state->Charge(items.size());
  for (const auto& [candidate, value] : items) {
    if (candidate.Is(Kind::kString) && candidate.string() == key) return &value;
  }
  return nullptr;
}

Value MakeSequence(SequenceKind kind, std::vector<Value> items, RenderState* state) {
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  if (!state->Charge(items.size() * sizeof(Value) + sizeof(Sequence))) return {};
  for (const Value& item : items) sequence->depth = std::max(sequence->depth, item.Depth() + 1);
  if (sequence->depth > kMaxContainerDepth) {
    state->Fail("chat template: lists nested deeper than " + std::to_string(kMaxContainerDepth));
    return {};
  }
  sequence->items = std::move(items);
  return Value::Of(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value MakeDict(std::vector<std::pair<Value, Value>> items, RenderState* state) {
  auto dict = std::make_shared<Dict>();
  if (!state->Charge(items.size() * sizeof(items[0]) + sizeof(Dict))) return {};
  for (const auto& [key, value] : items) {
    dict->depth = std::max({dict->depth, key.Depth() + 1, value.Depth() + 1});
  }
  if (dict->depth > kMaxContainerDepth) {
    state->Fail("chat template: dicts nested deeper than " + std::to_string(kMaxContainerDepth));
    return {};
  }
  dict->items = std::move(items);
  return Value::Of(std::shared_ptr<const Dict>(std::move(dict)));
}

void SetItem(std::vector<std::pair<Value, Value>>* items, Value key, Value value,
             RenderState* state) {
  state->Charge(items->size() + 1);
  for (auto& [candidate, slot] : *items) {
    if (Equal(candidate, key, state)) {
      slot = std::move(value);
      return;
    }
  }
  items->emplace_back(std::move(key), std::move(value));
}

bool CheckHashable(const Value& key, RenderState* state) {
  bool hashable = !key.Is(Kind::kDict);
  if (key.Is(Kind::kSequence)) {
    const SequenceKind kind = key.sequence().kind;
    hashable = kind == SequenceKind::kTuple || kind == SequenceKind::kRange;
    for (const Value& item : key.sequence().items)
      hashable = hashable && CheckHashable(item, state);
  }
  if (!hashable) state->Fail("unhashable type: '" + std::string(key.TypeName()) + "'");
  return hashable && state->ok();
}

bool IsTrue(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.number() != 0;
    case Kind::kString:
      return !value.string().empty();
    case Kind::kSequence:
      return value.sequence().kind == SequenceKind::kIterator || !value.sequence().items.empty();
    case Kind::kDict:
      return !value.dict().items.empty();
    default:
      return true;
  }
}

bool Equal(const Value& a, const Value& b, RenderState* state) {
  if (!state->Charge(4)) return false;
  if (a.IsNumber() && b.IsNumber()) {
    if (a.IsInteger() && b.IsInteger()) return a.integer() == b.integer();
    return a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      state->Charge(std::min(a.string().size(), b.string().size()) / 16);
      return a.string() == b.string();
    case Kind::kSequence: {
      if (&a.sequence() == &b.sequence()) return true;
      const SequenceKind kind = a.sequence().kind;
      if (kind != b.sequence().kind || kind == SequenceKind::kIterator) return false;
      if (kind == SequenceKind::kKeys || kind == SequenceKind::kItems) {
        state->FailUnsupported("comparing dict views");
        return false;
      }
      if (kind == SequenceKind::kValues) return false;
      return EqualItems(a.sequence().items, b.sequence().items, state);
    }
    case Kind::kDict:
      return &a.dict() == &b.dict() || EqualDicts(a.dict(), b.dict(), state);
    case Kind::kNamespace:
      return a.name_space() == b.name_space();
    case Kind::kLoop:
      return a.loop() == b.loop();
    case Kind::kMacro:
      return a.macro() == b.macro();
    case Kind::kFunction:
      return a.function() == b.function();
    case Kind::kMethod:
      state->FailUnsupported("comparing methods");
      return false;
    default:
      return false;
  }
}

bool Less(const Value& a, const Value& b, RenderState* state) {
  if (!state->Charge(1)) return false;
  if (a.IsNumber() && b.IsNumber()) {
    if (a.IsInteger() && b.IsInteger()) return a.integer() < b.integer();
    return a.number() < b.number();
  }
  // UTF-8 strings sort in the order of their code points.
  if (a.Is(Kind::kString) && b.Is(Kind::kString)) {
    state->Charge(std::min(a.string().size(), b.string().size()) / 16);
    return a.string() < b.string();
  }
  for (const SequenceKind kind : {SequenceKind::kList, SequenceKind::kTuple}) {
    if (!IsKind(a, kind) || !IsKind(b, kind)) continue;
    const auto& left = a.sequence().items;
    const auto& right = b.sequence().items;
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      const bool equal = Equal(left[i], right[i], state);
      if (!state->ok()) return false;
      if (!equal) return Less(left[i], right[i], state);
    }
    return left.size() < right.size();
  }
  for (const Value* value : {&a, &b}) {
    if (value->IsUndefined()) state->Fail(value->undefined_message());
  }
  state->Fail("'<' not supported between instances of '" + std::string(a.TypeName()) + "' and '" +
              std::string(b.TypeName()) + "'");
  return false;
}

bool Contains(const Value& container, const Value& item, RenderState* state) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.Is(Kind::kString)) {
        state->Fail("'in <string>' requires string as left operand, not " +
                    std::string(item.TypeName()));
        return false;
      }
      state->Charge(container.string().size() / 4);
      return FindText(container.string(), item.string()) != std::string::npos;
    case Kind::kDict:
      return CheckHashable(item, state) && container.dict().Find(item, state) != nullptr;
    case Kind::kUndefined:
      return false;
    case Kind::kSequence: {
      if (container.sequence().kind == SequenceKind::kIterator) {
        state->FailUnsupported("'in' with an iterator (add '| list')");
        return false;
      }
      for (const Value& candidate : container.sequence().items) {
        if (Equal(candidate, item, state)) return true;
        if (!state->ok()) return false;
      }
      return false;
    }
    default:
      state->Fail("argument of type '" + std::string(container.TypeName()) + "' is not iterable");
      return false;
  }
}

Integer Length(const Value& value, RenderState* state) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      state->Charge(value.string().size() / 16);
      return static_cast<Integer>(NumCodePoints(value.string()));
    case Kind::kDict:
      return static_cast<Integer>(value.dict().items.size());
    case Kind::kSequence:
      if (value.sequence().kind != SequenceKind::kIterator) {
        return static_cast<Integer>(value.sequence().items.size());
      }
      [[fallthrough]];
    default:
      state->Fail("object of type '" + std::string(value.TypeName()) + "' has no len()");
      return 0;
  }
}

std::vector<Value> Items(const Value& value, RenderState* state) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kString:
      if (!state->Charge(value.string().size() * sizeof(Value))) break;
      for (size_t pos = 0; pos < value.string().size();) {
        const size_t start = pos;
        NextCodePoint(value.string(), &pos);
        items.push_back(Value::Of(value.string().substr(start, pos - start)));
      }
      break;
    case Kind::kDict:
      if (!state->Charge(value.dict().items.size() * sizeof(Value))) break;
      for (const auto& item : value.dict().items) items.push_back(item.first);
      break;
    case Kind::kSequence: {
      const Sequence& sequence = value.sequence();
      if (sequence.use == Sequence::Use::kPartly) {
        state->FailUnsupported("using an iterator again (add '| list')");
      }
      if (sequence.use != Sequence::Use::kFresh) break;
      if (!state->Charge(sequence.items.size() * sizeof(Value))) break;
      if (sequence.kind == SequenceKind::kIterator) sequence.use = Sequence::Use::kDone;
      items = sequence.items;
      break;
    }
    default:
      state->Fail("'" + std::string(value.TypeName()) + "' object is not iterable");
  }
  return items;
}

void MarkPartlyUsed(const Value& value) {
  if (value.Is(Kind::kSequence) && value.sequence().kind == SequenceKind::kIterator) {
    value.sequence().use = Sequence::Use::kPartly;
  }
}

std::string Str(const Value& value, RenderState* state) {
  if (value.Is(Kind::kString)) {
    state->Charge(value.string().size());
    return value.string();
  }
  if (value.IsUndefined()) return {};
  return Repr(value, state);
}

std::string Repr(const Value& value, RenderState* state) {
  if (!state->Charge(64)) return {};
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.boolean() ? "True" : "False";
    case Kind::kInt:
      return IntegerText(value.integer());
    case Kind::kFloat:
      return FloatText(value.number());
    case Kind::kString:
      if (value.IsMarkup()) state->FailUnsupported("printing a list or dict with safe text");
      state->Charge(value.string().size());
      return QuotedText(value.string());
    case Kind::kSequence:
      return SequenceRepr(value.sequence(), state);
    case Kind::kDict: {
      std::string out = "{";
      for (const auto& [key, item] : value.dict().items) {
        if (out.size() > 1) out += ", ";
        const std::string pair = Repr(key, state) + ": " + Repr(item, state);
        if (!state->Charge(pair.size())) return {};
        out += pair;
      }
      return out + "}";
    }
    default:
      state->FailUnsupported("printing a " + std::string(value.TypeName()));
      return {};
  }
}

}  // namespace skein::jinja
