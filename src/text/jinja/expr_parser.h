#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace skein::jinja {

// Parses expressions inside tags from the tokens of a template. Keeps the first error. After an
// error, the parsing functions return quickly with an arbitrary value, perhaps null.
class ExprParser {
 public:
  // Deeper trees are refused, so that walking a tree needs little stack.
  static constexpr int kMaxDepth = 100;

  explicit ExprParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void Fail(const std::string& message) { FailAs(StatusCode::kInvalidArgument, message); }
  void FailUnsupported(const std::string& what) {
    FailAs(StatusCode::kUnsupported, what + " is not supported");
  }

  const Token& current() const { return tokens_[pos_]; }
  bool At(TokenKind kind) const { return current().kind == kind; }
  bool AtName(std::string_view name) const { return IsNameToken(current(), name); }
  bool AtOperator(std::string_view op) const {
    return At(TokenKind::kOperator) && current().text == op;
  }
  void Next() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  // Skips the current token if it is the name `name`.
  bool SkipName(std::string_view name);
  bool SkipOperator(std::string_view op);
  // Skips the current token if it is the operator `op`; fails otherwise.
  void ExpectOperator(std::string_view op);
  void Expect(TokenKind kind, std::string_view what);
  std::string ExpectName();

  // Parses an expression, with or without an inline if.
  ExprPtr ParseExpression(bool with_conditional = true);
  // Parses one expression, or a tuple of expressions separated by commas.
  ExprPtr ParseTuple(bool with_conditional = true, bool in_parentheses = false);
  // Parses the target of an assignment. An attribute of a namespace is allowed only with
  // `with_namespace`.
  Target ParseTarget(bool with_namespace);
  // Parses `| filter | filter ...` applied to `operand`, which is null for the text of a block. In
  // a filter tag, no bar precedes the first filter.
  ExprPtr ParseFilters(ExprPtr operand, bool without_first_bar = false);

 private:
  static bool IsNameToken(const Token& token, std::string_view name) {
    return token.kind == TokenKind::kName && token.text == name;
  }
  const Token& Ahead() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  void FailAs(StatusCode code, const std::string& message);

  ExprPtr Make(ExprKind kind, std::string name = {}) const;
  // Adds an operand and updates the depth of the expression.
  void Attach(Expr* expr, ExprPtr operand);
  ExprPtr Binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right);

  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  std::optional<std::string> SkipComparator();
  ExprPtr ParseSum();
  ExprPtr ParseConcat();
  ExprPtr ParseProduct();
  ExprPtr ParseUnary(bool with_filters = true);
  ExprPtr ParsePrimary();
  ExprPtr ParseNameOrConstant();
  ExprPtr ParseList();
  ExprPtr ParseDict();
  ExprPtr ParsePostfix(ExprPtr expr);
  ExprPtr ParseFiltersAndTests(ExprPtr expr);
  ExprPtr ParseSubscript(ExprPtr expr);
  ExprPtr ParseSlice(ExprPtr expr, ExprPtr start);
  ExprPtr ParseCall(ExprPtr callee);
  ExprPtr ParseTest(ExprPtr expr);
  void ParseArguments(Expr* call);
  bool AtTupleEnd() const;
  Target ParseTargetItem(bool with_namespace);

  void CheckCallee(const Expr& callee);
  void CheckFilter(const Expr& filter);
  void CheckTest(const Expr& test);
  void CheckName(const std::string& name);

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
  Status status_;
};

}  // namespace skein::jinja
