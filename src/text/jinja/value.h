#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/state.h"

namespace skein::jinja {

// Integers have 128 bits: every JSON integer fits. Overflow is an error and never gives a wrong
// number.
__extension__ typedef __int128 Integer;

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;
struct Method;

// A missing value. `message` is the error of any use except printing and testing it.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};

// The functions that every template can call.
enum class Function { kRange, kDict, kNamespace, kRaiseException, kStrftimeNow };

enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kMethod,
  kFunction,
};

// A Python value in a template. Copies are cheap: text and containers are shared and, except for
// namespaces, immutable. Strings are UTF-8 and behave as sequences of code points. Namespaces,
// loops and macros belong to the evaluator and live as long as it does.
class Value {
 public:
  Value() = default;  // undefined
  static Value UndefinedNamed(std::string_view name);
  static Value UndefinedBecause(std::string message);
  static Value OfNone() { return Value(Data(None{})); }
  static Value Of(bool value) { return Value(Data(value)); }
  static Value Of(Integer value) { return Value(Data(value)); }
  static Value Of(double value) { return Value(Data(value)); }
  static Value Of(std::string value);
  // Text that is marked as safe (Markup); it prints unchanged. Python escapes other text that is
  // joined to safe text; such operations fail as unsupported.
  static Value OfMarkup(std::string value);
  static Value Of(std::shared_ptr<const Sequence> value) { return Value(Data(std::move(value))); }
  static Value Of(std::shared_ptr<const Dict> value) { return Value(Data(std::move(value))); }
  static Value Of(Namespace* value) { return Value(Data(value)); }
  static Value Of(Loop* value) { return Value(Data(value)); }
  static Value Of(const Macro* value) { return Value(Data(value)); }
  static Value Of(std::shared_ptr<const Method> value) { return Value(Data(std::move(value))); }
  static Value Of(Function value) { return Value(Data(value)); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool Is(Kind kind) const { return this->kind() == kind; }
  bool IsMarkup() const { return is_markup_; }
  bool IsUndefined() const { return Is(Kind::kUndefined); }
  // Python's bool is an int.
  bool IsInteger() const { return Is(Kind::kInt) || Is(Kind::kBool); }
  bool IsNumber() const { return IsInteger() || Is(Kind::kFloat); }

  // REQUIRES: for each of these functions, that the value has the kind.
  const std::string& undefined_message() const;
  bool boolean() const { return std::get<bool>(data_); }
  Integer integer() const;  // also for kBool
  double number() const;    // for any number
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace* name_space() const { return std::get<Namespace*>(data_); }
  Loop* loop() const { return std::get<Loop*>(data_); }
  const Macro* macro() const { return std::get<const Macro*>(data_); }
  const Method& method() const { return *std::get<std::shared_ptr<const Method>>(data_); }
  Function function() const { return std::get<Function>(data_); }

  // The nesting depth of containers in this value; 0 for a scalar.
  int Depth() const;
  // The name of the type in messages of Python: "str", "int", ...
  std::string_view TypeName() const;

 private:
  using Data =
      std::variant<Undefined, None, bool, Integer, double, std::shared_ptr<const std::string>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, Namespace*, Loop*,
                   const Macro*, std::shared_ptr<const Method>, Function>;
  explicit Value(Data data) : data_(std::move(data)) {}

  Data data_;
  bool is_markup_ = false;  // of kString
};

// The greatest depth of nested containers. It limits the stack that walking and freeing a value
// needs.
inline constexpr int kMaxContainerDepth = 100;

enum class SequenceKind { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  int depth = 1;
  // Iterators (map, select, reverse, ...) can be walked once and are empty afterwards. After an
  // incomplete walk, the remaining items are not known, and a second use is an error.
  enum class Use { kFresh, kPartly, kDone };
  mutable Use use = Use::kFresh;
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // the keys differ; in order of insertion
  int depth = 1;

  // The value of `key`, or null. Charges `state` for the search.
  const Value* Find(const Value& key, RenderState* state) const;
  const Value* Find(std::string_view key, RenderState* state) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// The method `receiver.name` before it is called.
struct Method {
  Value receiver;
  std::string name;
};

// Makes a container of the items. If it is nested too deep, fails and returns undefined.
Value MakeSequence(SequenceKind kind, std::vector<Value> items, RenderState* state);
Value MakeDict(std::vector<std::pair<Value, Value>> items, RenderState* state);
// Sets a key of a dict that is being built. If an equal key exists, its value is replaced.
void SetItem(std::vector<std::pair<Value, Value>>* items, Value key, Value value,
             RenderState* state);
// Fails if Python would say "unhashable type".
bool CheckHashable(const Value& key, RenderState* state);

// Python's bool(value), value == value and value < value. Less fails for types that have no order.
bool IsTrue(const Value& value);
bool Equal(const Value& a, const Value& b, RenderState* state);
bool Less(const Value& a, const Value& b, RenderState* state);
// Python's `item in container`.
bool Contains(const Value& container, const Value& item, RenderState* state);
// Python's len(value). Fails if Python has no length for the type.
Integer Length(const Value& value, RenderState* state);
// The items of an iteration over `value`. Fails if the value cannot be iterated. An iterator is
// empty afterwards.
std::vector<Value> Items(const Value& value, RenderState* state);
// Records that a walk over the items of an iterator did not reach the end.
void MarkPartlyUsed(const Value& value);

// str(value) and repr(value).
std::string Str(const Value& value, RenderState* state);
std::string Repr(const Value& value, RenderState* state);

}  // namespace skein::jinja
