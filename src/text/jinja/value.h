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

// Integers of 128 bits: every JSON integer fits, and overflow is an error, never a wrong number.
__extension__ typedef __int128 Integer;

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;
struct Method;

// A missing value. `message` is the error that using it (other than printing or testing) gives.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};

// The functions that a template finds without being given them.
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

// A Python value as a template sees it. Cheap to copy: text and containers are shared and, but for
// namespaces, never change. Strings are UTF-8 and behave as sequences of code points. Namespaces,
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
  // Text that is marked as safe (Markup). It prints as it is; put together with other text Python
  // escapes that, so what would do so fails as unsupported.
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

  // REQUIRES: the kind of each.
  const std::string& undefined_message() const;
  bool boolean() const { return std::get<bool>(data_); }
  Integer integer() const;  // of kBool too
  double number() const;    // of any number
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace* name_space() const { return std::get<Namespace*>(data_); }
  Loop* loop() const { return std::get<Loop*>(data_); }
  const Macro* macro() const { return std::get<const Macro*>(data_); }
  const Method& method() const { return *std::get<std::shared_ptr<const Method>>(data_); }
  Function function() const { return std::get<Function>(data_); }

  // Nesting of containers below this value; 0 for a scalar.
  int Depth() const;
  // What Python calls the type in its messages: "str", "int", ...
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

// Containers nest at most this deep, so that walking and freeing them needs little stack.
inline constexpr int kMaxContainerDepth = 100;

enum class SequenceKind { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  int depth = 1;
  // Iterators (map, select, reverse, ...) can be walked once; then they are empty. What is left of
  // one that was not walked to its end is not tracked: using it again is an error.
  enum class Use { kFresh, kPartly, kDone };
  mutable Use use = Use::kFresh;
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // distinct keys, in order of insertion
  int depth = 1;

  // The value of `key`, or null. Charges the search.
  const Value* Find(const Value& key, RenderState* state) const;
  const Value* Find(std::string_view key, RenderState* state) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// `receiver.name`, to be called.
struct Method {
  Value receiver;
  std::string name;
};

// Containers of the given items; fail when nested too deep (a failed value is undefined).
Value MakeSequence(SequenceKind kind, std::vector<Value> items, RenderState* state);
Value MakeDict(std::vector<std::pair<Value, Value>> items, RenderState* state);
// Sets a key of a dict under construction; an equal key is replaced in place.
void SetItem(std::vector<std::pair<Value, Value>>* items, Value key, Value value,
             RenderState* state);
// Fails where Python says "unhashable type".
bool CheckHashable(const Value& key, RenderState* state);

// Python's bool(value), value == value and value < value. Less fails on types without an order.
bool IsTrue(const Value& value);
bool Equal(const Value& a, const Value& b, RenderState* state);
bool Less(const Value& a, const Value& b, RenderState* state);
// Python's `item in container`.
bool Contains(const Value& container, const Value& item, RenderState* state);
// len(value); fails where Python has none.
Integer Length(const Value& value, RenderState* state);
// What iterating over `value` gives; fails if it cannot be iterated. Consumes iterators.
std::vector<Value> Items(const Value& value, RenderState* state);
// Notes that an iterator whose Items were taken was left before its end.
void MarkPartlyUsed(const Value& value);

// str(value) and repr(value).
std::string Str(const Value& value, RenderState* state);
std::string Repr(const Value& value, RenderState* state);

}  // namespace skein::jinja
