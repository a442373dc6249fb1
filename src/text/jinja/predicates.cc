#include <algorithm>
#include <array>

#include "text/jinja/library.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

using Predicate = bool (*)(const Value& value, const Value& argument, RenderState* state);
struct TestEntry {
  std::string_view name;
  size_t num_arguments;
  Predicate holds;
};

// Whether value modulo two is `remainder`.
bool HasParity(const Value& value, int remainder, RenderState* state) {
  const Value rest = Arithmetic("%", value, Value::Of(Integer{2}), state);
  return state->ok() && rest.number() == remainder;
}

bool IsSequenceLike(const Value& value) {
  if (value.Is(Kind::kSequence)) {
    const SequenceKind kind = value.sequence().kind;
    return kind == SequenceKind::kList || kind == SequenceKind::kTuple ||
           kind == SequenceKind::kRange;
  }
  return value.Is(Kind::kString) || value.Is(Kind::kDict) || value.IsUndefined();
}

bool IsIterable(const Value& value) {
  return value.Is(Kind::kSequence) || value.Is(Kind::kString) || value.Is(Kind::kDict) ||
         value.IsUndefined() || value.Is(Kind::kLoop);
}

using V = const Value&;
using R = RenderState*;

bool TestEqual(V v, V a, R s) { return Compare("==", v, a, s); }
bool TestUnequal(V v, V a, R s) { return Compare("!=", v, a, s); }

constexpr TestEntry kTests[] = {
    {"defined", 0, [](V v, V, R) { return !v.IsUndefined(); }},
    {"undefined", 0, [](V v, V, R) { return v.IsUndefined(); }},
    {"none", 0, [](V v, V, R) { return v.Is(Kind::kNone); }},
    {"boolean", 0, [](V v, V, R) { return v.Is(Kind::kBool); }},
    {"true", 0, [](V v, V, R) { return v.Is(Kind::kBool) && v.boolean(); }},
    {"false", 0, [](V v, V, R) { return v.Is(Kind::kBool) && !v.boolean(); }},
    {"integer", 0, [](V v, V, R) { return v.Is(Kind::kInt); }},
    {"float", 0, [](V v, V, R) { return v.Is(Kind::kFloat); }},
    {"number", 0, [](V v, V, R) { return v.IsNumber(); }},
    {"string", 0, [](V v, V, R) { return v.Is(Kind::kString); }},
    {"mapping", 0, [](V v, V, R) { return v.Is(Kind::kDict); }},
    {"sequence", 0, [](V v, V, R) { return IsSequenceLike(v); }},
    {"iterable", 0, [](V v, V, R) { return IsIterable(v); }},
    {"odd", 0, [](V v, V, R s) { return HasParity(v, 1, s); }},
    {"even", 0, [](V v, V, R s) { return HasParity(v, 0, s); }},
    {"in", 1, [](V v, V a, R s) { return Contains(a, v, s); }},
    {"eq", 1, TestEqual},
    {"==", 1, TestEqual},
    {"equalto", 1, TestEqual},
    {"ne", 1, TestUnequal},
    {"!=", 1, TestUnequal},
};

const TestEntry* FindTest(std::string_view name) {
  for (const TestEntry& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace

bool IsTest(std::string_view name) { return FindTest(name) != nullptr; }

bool CallTest(std::string_view name, const Value& value, const Arguments& arguments,
              RenderState* state) {
  const TestEntry* test = FindTest(name);
  if (arguments.positional.size() != test->num_arguments || !arguments.keywords.empty()) {
    state->Fail("test '" + std::string(name) + "' takes " + std::to_string(test->num_arguments) +
                " positional arguments");
    return false;
  }
  const Value none;
  const bool holds =
      test->holds(value, test->num_arguments > 0 ? arguments.positional[0] : none, state);
  return holds && state->ok();
}

}  // namespace skein::jinja
