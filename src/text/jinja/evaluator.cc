#include "text/jinja/evaluator.h"

#include <chrono>
#include <ctime>
#include <deque>
#include <utility>

#include "text/jinja/library.h"
#include "text/jinja/loop.h"

namespace skein::jinja {

// The names of one block. Scopes nest as blocks do in the source. The scope of a macro lies in the
// scope that defines the macro.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;  // views into the tree
};

struct Macro {
  const Stmt* definition = nullptr;
  Scope* scope = nullptr;
};

namespace {

enum class Flow { kNormal, kBreak, kContinue };

class Evaluator {
 public:
  Evaluator(const Value& variables, RenderState* state) : variables_(variables), state_(state) {}

  Result<std::string> Run(const Body& body) {
    std::string out;
    out_ = &out;
    const ScopeHolder root(this, nullptr);
    RunBody(body, root.get());
    if (!state_->ok()) return state_->status();
    return out;
  }

 private:
  // Owns a scope for as long as this object lives. If a macro is defined meanwhile, the scope
  // stays, since the macro may refer to it.
  class ScopeHolder {
   public:
    ScopeHolder(Evaluator* evaluator, Scope* parent)
        : evaluator_(evaluator),
          num_scopes_(evaluator->scopes_.size()),
          num_macros_(evaluator->macros_.size()) {
      evaluator->scopes_.push_back(Scope{parent, {}});
      scope_ = &evaluator->scopes_.back();
    }
    ~ScopeHolder() {
      if (evaluator_->macros_.size() != num_macros_) return;
      while (evaluator_->scopes_.size() > num_scopes_) evaluator_->scopes_.pop_back();
    }
    ScopeHolder(const ScopeHolder&) = delete;
    ScopeHolder& operator=(const ScopeHolder&) = delete;
    Scope* get() const { return scope_; }

   private:
    Evaluator* evaluator_;
    size_t num_scopes_, num_macros_;
    Scope* scope_;
  };

  void Print(std::string_view text) {
    if (out_->size() + text.size() > state_->limits().max_output_bytes) {
      return state_->Fail("chat template: the text is longer than " +
                          std::to_string(state_->limits().max_output_bytes) + " bytes");
    }
    if (state_->Charge(text.size())) out_->append(text);
  }

  // ---- Statements ----

  Flow RunBody(const Body& body, Scope* scope) {
    for (const auto& stmt : body) {
      const Flow flow = RunStmt(*stmt, scope);
      if (flow != Flow::kNormal || !state_->ok()) return flow;
    }
    return Flow::kNormal;
  }

  Flow RunStmt(const Stmt& stmt, Scope* scope) {
    RenderState::Level level(state_);
    if (!state_->Step()) return Flow::kNormal;
    switch (stmt.kind) {
      case StmtKind::kText:
        Print(stmt.text);
        break;
      case StmtKind::kPrint:
        Print(Str(Eval(*stmt.value, scope), state_));
        break;
      case StmtKind::kIf:
        for (const auto& branch : stmt.branches) {
          if (branch.condition == nullptr || Test(*branch.condition, scope)) {
            return state_->ok() ? RunBody(branch.body, scope) : Flow::kNormal;
          }
        }
        break;
      case StmtKind::kFor:
        RunFor(stmt, scope);
        break;
      case StmtKind::kSet:
        if (CheckNamespaces(stmt.target, scope))
          Assign(stmt.target, Eval(*stmt.value, scope), scope);
        break;
      case StmtKind::kSetBlock:
        Assign(stmt.target, Capture(stmt, scope), scope);
        break;
      case StmtKind::kFilter:
        Print(Str(Capture(stmt, scope), state_));
        break;
      case StmtKind::kScope:
        return RunBody(stmt.body, ScopeHolder(this, scope).get());
      case StmtKind::kMacro:
        state_->Charge(sizeof(Scope) + sizeof(Macro) + 256);  // the enclosing scopes are kept, too
        macros_.push_back(Macro{&stmt, scope});
        SetName(scope, stmt.text, Value::Of(&macros_.back()));
        break;
      case StmtKind::kBreak:
        return Flow::kBreak;
      case StmtKind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kNormal;
  }

  // Renders a block and applies its filters to the text.
  Value Capture(const Stmt& stmt, Scope* scope) {
    Value text = RunToText(stmt.body, ScopeHolder(this, scope).get());
    if (stmt.value == nullptr) return text;
    const Value* outer = std::exchange(block_text_, &text);
    Value filtered = Eval(*stmt.value, scope);
    block_text_ = outer;
    return filtered;
  }

  Value RunToText(const Body& body, Scope* scope) {
    std::string text;
    std::string* outer = std::exchange(out_, &text);
    RunBody(body, scope);
    out_ = outer;
    return Value::Of(std::move(text));
  }

  void RunFor(const Stmt& stmt, Scope* scope) {
    Value iterable = Eval(*stmt.value, scope);
    if (!state_->ok()) return;
    if (!state_->Charge(2 * sizeof(Loop))) return;
    loops_.emplace_back();
    Loop* loop = &loops_.back();
    loop->source = Items(iterable, state_);
    if (stmt.condition != nullptr) {
      loop->keep = [this, &stmt, scope](const Value& item) {
        const ScopeHolder inner(this, scope);
        Assign(stmt.target, item, inner.get());
        return state_->ok() && Test(*stmt.condition, inner.get());
      };
    }
    bool completed_one = false;
    while (state_->ok() && loop->Advance()) {
      if (!state_->Step()) break;
      const ScopeHolder inner(this, scope);
      SetName(inner.get(), "loop", Value::Of(loop));
      Assign(stmt.target, loop->current, inner.get());
      if (!state_->ok()) break;
      const Flow flow = RunBody(stmt.body, inner.get());
      // As in Jinja, the else branch runs unless at least one iteration reached its end without
      // break or continue.
      if (flow == Flow::kNormal) completed_one = true;
      if (flow == Flow::kBreak) break;
    }
    if (loop->HasMore()) MarkPartlyUsed(iterable);
    loop->source.clear();
    loop->keep = nullptr;
    if (!completed_one && state_->ok()) RunBody(stmt.otherwise, ScopeHolder(this, scope).get());
  }

  // ---- Names ----

  static void SetName(Scope* scope, std::string_view name, Value value) {
    for (auto& [known, slot] : scope->names) {
      if (known == name) {
        slot = std::move(value);
        return;
      }
    }
    scope->names.emplace_back(name, std::move(value));
  }

  Value Lookup(std::string_view name, const Scope* scope) {
    for (; scope != nullptr; scope = scope->parent) {
      for (const auto& [known, value] : scope->names) {
        if (known == name) return value;
      }
    }
    if (const Value* value = variables_.dict().Find(name, state_)) return *value;
    constexpr std::pair<std::string_view, Function> kFunctions[] = {
        {"range", Function::kRange},
        {"dict", Function::kDict},
        {"namespace", Function::kNamespace},
        {"raise_exception", Function::kRaiseException},
        {"strftime_now", Function::kStrftimeNow}};
    for (const auto& [known, function] : kFunctions) {
      if (known == name) return Value::Of(function);
    }
    return Value::UndefinedNamed(name);
  }

  bool CheckNamespaces(const Target& target, Scope* scope) {
    if (!target.attribute.empty() && !Lookup(target.name, scope).Is(Kind::kNamespace)) {
      state_->Fail("cannot assign attribute on non-namespace object");
    }
    for (const Target& item : target.items) CheckNamespaces(item, scope);
    return state_->ok();
  }

  void Assign(const Target& target, Value value, Scope* scope) {
    if (!state_->ok()) return;
    if (!target.items.empty()) {
      std::vector<Value> items = Items(value, state_);
      if (!state_->ok()) return;
      if (items.size() != target.items.size()) {
        return state_->Fail("cannot unpack " + std::to_string(items.size()) + " values into " +
                            std::to_string(target.items.size()));
      }
      for (size_t i = 0; i < items.size(); ++i) Assign(target.items[i], std::move(items[i]), scope);
    } else if (!target.attribute.empty()) {
      Value holder = Lookup(target.name, scope);
      if (!holder.Is(Kind::kNamespace)) {
        return state_->Fail("cannot assign attribute on non-namespace object");
      }
      SetAttribute(holder.name_space(), target.attribute, std::move(value));
    } else {
      SetName(scope, target.name, std::move(value));
    }
  }

  void SetAttribute(Namespace* holder, const std::string& name, Value value) {
    state_->Charge(holder->attributes.size() + name.size());
    for (auto& [known, slot] : holder->attributes) {
      if (known == name) {
        slot = std::move(value);
        return;
      }
    }
    state_->Charge(2 * sizeof(holder->attributes[0]));
    holder->attributes.emplace_back(name, std::move(value));
  }

  // ---- Expressions ----

  bool Test(const Expr& expr, Scope* scope) { return IsTrue(Eval(expr, scope)); }

  Value Eval(const Expr& expr, Scope* scope) {
    RenderState::Level level(state_);
    if (!state_->Step() || !state_->ok()) return {};
    switch (expr.kind) {
      case ExprKind::kConstant:
        return expr.constant;
      case ExprKind::kName:
        return Lookup(expr.name, scope);
      case ExprKind::kList:
        return MakeSequence(SequenceKind::kList, EvalAll(expr, 0, scope), state_);
      case ExprKind::kTuple:
        return MakeSequence(SequenceKind::kTuple, EvalAll(expr, 0, scope), state_);
      case ExprKind::kDict:
        return EvalDict(expr, scope);
      case ExprKind::kAttribute:
        return GetAttribute(Operand(expr, 0, scope), expr.name, state_);
      case ExprKind::kItem: {
        const Value container = Operand(expr, 0, scope);
        return GetItem(container, Operand(expr, 1, scope), state_);
      }
      case ExprKind::kSlice:
        return EvalSlice(expr, scope);
      case ExprKind::kCall:
        return EvalCall(expr, scope);
      case ExprKind::kFilter: {
        const Value value = expr.operands[0] ? Operand(expr, 0, scope) : *block_text_;
        const Arguments arguments = EvalArguments(expr, scope);
        return state_->ok() ? CallFilter(expr.name, value, arguments, state_) : Value();
      }
      case ExprKind::kTest: {
        const Value value = Operand(expr, 0, scope);
        const Arguments arguments = EvalArguments(expr, scope);
        return Value::Of(state_->ok() && CallTest(expr.name, value, arguments, state_));
      }
      case ExprKind::kNot:
        return Value::Of(!IsTrue(Operand(expr, 0, scope)));
      case ExprKind::kNegative:
        return Negate(Operand(expr, 0, scope), state_);
      default:
        return EvalOperator(expr, scope);
    }
  }

  Value EvalOperator(const Expr& expr, Scope* scope) {
    switch (expr.kind) {
      case ExprKind::kBinary: {
        const Value left = Operand(expr, 0, scope);
        const Value right = Operand(expr, 1, scope);
        return state_->ok() ? Arithmetic(expr.name, left, right, state_) : Value();
      }
      case ExprKind::kConcat: {
        std::string text;
        for (const Value& part : EvalAll(expr, 0, scope)) text += Str(part, state_);
        return Value::Of(std::move(text));
      }
      case ExprKind::kAnd: {
        Value left = Operand(expr, 0, scope);
        return IsTrue(left) ? Operand(expr, 1, scope) : left;
      }
      case ExprKind::kOr: {
        Value left = Operand(expr, 0, scope);
        return IsTrue(left) ? left : Operand(expr, 1, scope);
      }
      case ExprKind::kCompare: {
        Value left = Operand(expr, 0, scope);
        for (size_t i = 0; i < expr.comparators.size() && state_->ok(); ++i) {
          Value right = Operand(expr, i + 1, scope);
          if (!state_->ok() || !Compare(expr.comparators[i], left, right, state_)) {
            return Value::Of(false);
          }
          left = std::move(right);
        }
        return Value::Of(true);
      }
      case ExprKind::kConditional:
        if (Test(*expr.operands[0], scope)) return Operand(expr, 1, scope);
        if (expr.operands[2] != nullptr) return Operand(expr, 2, scope);
        return Value::UndefinedBecause(
            "the inline if-expression evaluated to false and no else section was defined");
      default:
        break;
    }
    SKEIN_CHECK(false);
    return {};
  }

  Value Operand(const Expr& expr, size_t index, Scope* scope) {
    return Eval(*expr.operands[index], scope);
  }

  std::vector<Value> EvalAll(const Expr& expr, size_t first, Scope* scope) {
    std::vector<Value> values;
    for (size_t i = first; i < expr.operands.size() && state_->ok(); ++i) {
      values.push_back(Operand(expr, i, scope));
    }
    return values;
  }

  Value EvalDict(const Expr& expr, Scope* scope) {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i + 1 < expr.operands.size() && state_->ok(); i += 2) {
      Value key = Operand(expr, i, scope);
      Value value = Operand(expr, i + 1, scope);
      if (CheckHashable(key, state_)) SetItem(&items, std::move(key), std::move(value), state_);
    }
    return MakeDict(std::move(items), state_);
  }

  Value EvalSlice(const Expr& expr, Scope* scope) {
    const Value value = Operand(expr, 0, scope);
    Value bounds[3];
    for (size_t i = 0; i < 3; ++i) {
      bounds[i] = expr.operands[i + 1] ? Operand(expr, i + 1, scope) : Value::OfNone();
    }
    return state_->ok() ? GetSlice(value, bounds[0], bounds[1], bounds[2], state_) : Value();
  }

  Arguments EvalArguments(const Expr& expr, Scope* scope) {
    Arguments arguments;
    arguments.positional = EvalAll(expr, 1, scope);
    for (const auto& [name, value] : expr.keywords) {
      arguments.keywords.emplace_back(name, Eval(*value, scope));
    }
    return arguments;
  }

  // ---- Calls ----

  Value EvalCall(const Expr& expr, Scope* scope) {
    const Value callee = Operand(expr, 0, scope);
    const Arguments arguments = EvalArguments(expr, scope);
    if (!state_->ok()) return {};
    switch (callee.kind()) {
      case Kind::kMacro:
        return CallMacro(*callee.macro(), arguments);
      case Kind::kMethod:
        return CallMethod(callee.method().receiver, callee.method().name, arguments, state_);
      case Kind::kFunction:
        return CallFunction(callee.function(), arguments);
      case Kind::kUndefined:
        state_->Fail(callee.undefined_message());
        return {};
      default:
        state_->Fail("'" + std::string(callee.TypeName()) + "' object is not callable");
        return {};
    }
  }

  Value CallMacro(const Macro& macro, const Arguments& arguments) {
    const Stmt& definition = *macro.definition;
    std::vector<std::string_view> names;
    for (const auto& parameter : definition.parameters) names.push_back(parameter.first);
    auto bound = BindArguments("macro '" + definition.text + "'", names, 0, arguments, state_);
    if (!state_->ok()) return {};
    const ScopeHolder holder(this, macro.scope);
    Scope* scope = holder.get();
    for (size_t i = 0; i < names.size(); ++i) {
      const Expr* fallback = definition.parameters[i].second.get();
      Value value = bound[i] ? std::move(*bound[i])
                    : fallback != nullptr
                        ? Eval(*fallback, scope)
                        : Value::UndefinedBecause("parameter '" + std::string(names[i]) +
                                                  "' was not provided");
      SetName(scope, names[i], std::move(value));
    }
    return RunToText(definition.body, scope);
  }

  Value CallFunction(Function function, const Arguments& arguments) {
    switch (function) {
      case Function::kRange:
        return CallRange(arguments);
      case Function::kDict:
        return CallDict(arguments);
      case Function::kNamespace: {
        const Value attributes = CallDict(arguments);
        if (!state_->ok()) return {};
        state_->Charge(2 * sizeof(Namespace));
        namespaces_.emplace_back();
        for (const auto& [key, value] : attributes.dict().items) {
          if (!key.Is(Kind::kString)) {
            state_->FailUnsupported("a namespace with a key that is no string");
            return {};
          }
          SetAttribute(&namespaces_.back(), key.string(), value);
        }
        return Value::Of(&namespaces_.back());
      }
      case Function::kRaiseException: {
        const auto bound = BindArguments("raise_exception", {"message"}, 1, arguments, state_);
        if (state_->ok()) state_->Fail(Str(*bound[0], state_));
        return {};
      }
      case Function::kStrftimeNow:
        return CallStrftimeNow(arguments);
    }
    return {};
  }

  // The range has at most as many items as the sandbox allows.
  Value CallRange(const Arguments& arguments) {
    constexpr Integer kMaxRange = 100'000;
    Integer bounds[3] = {0, 0, 1};
    const size_t num_given = arguments.positional.size();
    if (num_given < 1 || num_given > 3 || !arguments.keywords.empty()) {
      state_->Fail("range takes 1 to 3 arguments");
      return {};
    }
    for (size_t i = 0; i < num_given; ++i) {
      const Value& bound = arguments.positional[i];
      if (!bound.IsInteger()) {
        state_->Fail("'" + std::string(bound.TypeName()) +
                     "' object cannot be interpreted as an integer");
        return {};
      }
      bounds[num_given == 1 ? 1 : i] = bound.integer();
    }
    const auto [start, stop, step] = bounds;
    if (step == 0) state_->Fail("range() arg 3 must not be zero");
    std::vector<Value> items;
    for (Integer i = start; state_->ok() && (step > 0 ? i < stop : i > stop); i += step) {
      if (static_cast<Integer>(items.size()) == kMaxRange) {
        state_->Fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
        break;
      }
      items.push_back(Value::Of(i));
      if ((step > 0 && i > stop - step) || (step < 0 && i < stop - step)) break;
    }
    return MakeSequence(SequenceKind::kRange, std::move(items), state_);
  }

  Value CallDict(const Arguments& arguments) {
    std::vector<std::pair<Value, Value>> items;
    if (arguments.positional.size() > 1) {
      state_->Fail("dict expected at most 1 argument, got " +
                   std::to_string(arguments.positional.size()));
    } else if (arguments.positional.size() == 1) {
      const Value& from = arguments.positional[0];
      if (from.Is(Kind::kDict)) {
        items = from.dict().items;
        state_->Charge(items.size() * sizeof(items[0]));
      } else {
        for (const Value& pair : Items(from, state_)) {
          std::vector<Value> two = Items(pair, state_);
          if (two.size() != 2) state_->Fail("dict update sequence element is no pair");
          if (!state_->ok() || !CheckHashable(two[0], state_)) return {};
          SetItem(&items, std::move(two[0]), std::move(two[1]), state_);
        }
      }
    }
    for (const auto& [name, value] : arguments.keywords) {
      SetItem(&items, Value::Of(name), value, state_);
    }
    return MakeDict(std::move(items), state_);
  }

  Value CallStrftimeNow(const Arguments& arguments) {
    const auto bound = BindArguments("strftime_now", {"format"}, 1, arguments, state_);
    if (!state_->ok()) return {};
    if (!bound[0]->Is(Kind::kString) || bound[0]->string().size() > 256) {
      state_->Fail("strftime_now takes a format of at most 256 bytes");
      return {};
    }
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    localtime_r(&now, &local);
    char buffer[4096];
    const size_t length = std::strftime(buffer, sizeof(buffer), bound[0]->string().c_str(), &local);
    return Value::Of(std::string(buffer, length));
  }

  const Value& variables_;
  RenderState* const state_;
  std::string* out_ = nullptr;
  const Value* block_text_ = nullptr;  // the operand of a filter without an operand
  std::deque<Scope> scopes_;
  std::deque<Macro> macros_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
};

}  // namespace

Result<std::string> Evaluate(const Body& body, const Value& variables, RenderState* state) {
  return Evaluator(variables, state).Run(body);
}

}  // namespace skein::jinja
