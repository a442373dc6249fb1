#include "text/jinja/expr_parser.h"

#include <algorithm>
#include <array>

#include "text/jinja/library.h"

namespace skein::jinja {
namespace {

// Names that Jinja defines and this engine does not support.
constexpr std::array<std::string_view, 8> kUnsupportedNames = {
    "lipsum", "cycler", "joiner", "self", "super", "caller", "varargs", "kwargs"};

std::string Described(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

void ExprParser::FailAs(StatusCode code, const std::string& message) {
  if (!status_.ok()) return;
  status_ = Status(code, "chat template: line " + std::to_string(current().line) + ": " + message);
}

bool ExprParser::SkipName(std::string_view name) {
  if (!AtName(name)) return false;
  Next();
  return true;
}

bool ExprParser::SkipOperator(std::string_view op) {
  if (!AtOperator(op)) return false;
  Next();
  return true;
}

void ExprParser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) {
    Fail("expected '" + std::string(op) + "', got " + Described(current()));
  }
}

void ExprParser::Expect(TokenKind kind, std::string_view what) {
  if (!At(kind)) return Fail("expected " + std::string(what) + ", got " + Described(current()));
  Next();
}

std::string ExprParser::ExpectName() {
  std::string name = current().text;
  Expect(TokenKind::kName, "a name");
  return name;
}

ExprPtr ExprParser::Make(ExprKind kind, std::string name) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = current().line;
  expr->name = std::move(name);
  return expr;
}

void ExprParser::Attach(Expr* expr, ExprPtr operand) {
  if (operand != nullptr) {
    expr->depth = std::max(expr->depth, operand->depth + 1);
    if (expr->depth > kMaxDepth) {
      FailUnsupported("an expression nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
  }
  expr->operands.push_back(std::move(operand));
}

ExprPtr ExprParser::Binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right) {
  ExprPtr expr = Make(kind, std::move(op));
  Attach(expr.get(), std::move(left));
  Attach(expr.get(), std::move(right));
  return expr;
}

ExprPtr ExprParser::ParseExpression(bool with_conditional) {
  if (++nesting_ > kMaxDepth) {
    FailUnsupported("an expression nested deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  ExprPtr expr = ok() ? ParseOr() : nullptr;
  while (with_conditional && ok() && SkipName("if")) {
    ExprPtr conditional = Make(ExprKind::kConditional);
    Attach(conditional.get(), ParseOr());
    Attach(conditional.get(), std::move(expr));
    Attach(conditional.get(), ok() && SkipName("else") ? ParseExpression() : nullptr);
    expr = std::move(conditional);
  }
  --nesting_;
  return expr;
}

ExprPtr ExprParser::ParseOr() {
  ExprPtr left = ParseAnd();
  while (ok() && SkipName("or")) left = Binary(ExprKind::kOr, "or", std::move(left), ParseAnd());
  return left;
}

ExprPtr ExprParser::ParseAnd() {
  ExprPtr left = ParseNot();
  while (ok() && SkipName("and")) {
    left = Binary(ExprKind::kAnd, "and", std::move(left), ParseNot());
  }
  return left;
}

ExprPtr ExprParser::ParseNot() {
  int num_nots = 0;
  while (SkipName("not")) ++num_nots;
  ExprPtr expr = ParseCompare();
  for (; num_nots > 0 && ok(); --num_nots) {
    ExprPtr negation = Make(ExprKind::kNot);
    Attach(negation.get(), std::move(expr));
    expr = std::move(negation);
  }
  return expr;
}

std::optional<std::string> ExprParser::SkipComparator() {
  for (const std::string_view op : {"==", "!=", "<", "<=", ">", ">="}) {
    if (SkipOperator(op)) return std::string(op);
  }
  if (SkipName("in")) return "in";
  if (AtName("not") && IsNameToken(Ahead(), "in")) {
    Next();
    Next();
    return "not in";
  }
  return std::nullopt;
}

ExprPtr ExprParser::ParseCompare() {
  ExprPtr first = ParseSum();
  ExprPtr compare;
  while (ok()) {
    auto comparator = SkipComparator();
    if (!comparator) break;
    if (compare == nullptr) {
      compare = Make(ExprKind::kCompare);
      Attach(compare.get(), std::move(first));
    }
    compare->comparators.push_back(std::move(*comparator));
    Attach(compare.get(), ParseSum());
  }
  return compare != nullptr ? std::move(compare) : std::move(first);
}

ExprPtr ExprParser::ParseSum() {
  ExprPtr left = ParseConcat();
  while (ok() && (AtOperator("+") || AtOperator("-"))) {
    std::string op = current().text;
    Next();
    left = Binary(ExprKind::kBinary, std::move(op), std::move(left), ParseConcat());
  }
  return left;
}

ExprPtr ExprParser::ParseConcat() {
  ExprPtr first = ParseProduct();
  if (!AtOperator("~")) return first;
  ExprPtr concat = Make(ExprKind::kConcat);
  Attach(concat.get(), std::move(first));
  while (ok() && SkipOperator("~")) Attach(concat.get(), ParseProduct());
  return concat;
}

ExprPtr ExprParser::ParseProduct() {
  ExprPtr left = ParseUnary();
  while (ok() && (AtOperator("*") || AtOperator("%"))) {
    std::string op = current().text;
    Next();
    left = Binary(ExprKind::kBinary, std::move(op), std::move(left), ParseUnary());
  }
  for (const std::string_view op : {"/", "//", "**"}) {
    if (AtOperator(op)) FailUnsupported("operator '" + std::string(op) + "'");
  }
  return left;
}

ExprPtr ExprParser::ParseUnary(bool with_filters) {
  ExprPtr expr;
  if (AtOperator("+")) FailUnsupported("a unary '+'");
  if (AtOperator("-")) {
    expr = Make(ExprKind::kNegative);
    Next();
    if (++nesting_ > kMaxDepth)
      FailUnsupported("an expression nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (ok()) Attach(expr.get(), ParseUnary(false));
    --nesting_;
  } else {
    expr = ParsePrimary();
  }
  expr = ParsePostfix(std::move(expr));
  return with_filters ? ParseFiltersAndTests(std::move(expr)) : std::move(expr);
}

ExprPtr ExprParser::ParsePrimary() {
  if (!ok()) return nullptr;
  ExprPtr expr;
  switch (current().kind) {
    case TokenKind::kName:
      return ParseNameOrConstant();
    case TokenKind::kString: {  // adjacent strings are joined
      expr = Make(ExprKind::kConstant);
      std::string text;
      for (; At(TokenKind::kString); Next()) text += current().text;
      expr->constant = Value::Of(std::move(text));
      return expr;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      expr = Make(ExprKind::kConstant);
      expr->constant =
          At(TokenKind::kInteger) ? Value::Of(current().integer) : Value::Of(current().number);
      Next();
      return expr;
    case TokenKind::kOperator:
      if (SkipOperator("(")) {
        expr = ParseTuple(true, true);
        ExpectOperator(")");
        return expr;
      }
      if (AtOperator("[")) return ParseList();
      if (AtOperator("{")) return ParseDict();
      break;
    default:
      break;
  }
  Fail("unexpected " + Described(current()));
  return nullptr;
}

ExprPtr ExprParser::ParseNameOrConstant() {
  const std::string name = ExpectName();
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    ExprPtr expr = Make(ExprKind::kConstant);
    expr->constant = Value::Of(name == "true" || name == "True");
    return expr;
  }
  if (name == "none" || name == "None") {
    ExprPtr expr = Make(ExprKind::kConstant);
    expr->constant = Value::OfNone();
    return expr;
  }
  CheckName(name);
  return Make(ExprKind::kName, name);
}

bool ExprParser::AtTupleEnd() const {
  return At(TokenKind::kVariableEnd) || At(TokenKind::kBlockEnd) || AtOperator(")");
}

ExprPtr ExprParser::ParseTuple(bool with_conditional, bool in_parentheses) {
  ExprPtr tuple = Make(ExprKind::kTuple);
  bool is_tuple = false;
  while (ok() && !AtTupleEnd()) {
    Attach(tuple.get(), ParseExpression(with_conditional));
    if (!SkipOperator(",")) break;
    is_tuple = true;
  }
  if (is_tuple || !ok()) return tuple;
  if (!tuple->operands.empty()) return std::move(tuple->operands[0]);
  if (!in_parentheses) Fail("expected an expression, got " + Described(current()));
  return tuple;
}

ExprPtr ExprParser::ParseList() {
  ExprPtr list = Make(ExprKind::kList);
  ExpectOperator("[");
  while (ok() && !AtOperator("]")) {
    Attach(list.get(), ParseExpression());
    if (!AtOperator("]")) ExpectOperator(",");
  }
  ExpectOperator("]");
  return list;
}

ExprPtr ExprParser::ParseDict() {
  ExprPtr dict = Make(ExprKind::kDict);
  ExpectOperator("{");
  while (ok() && !AtOperator("}")) {
    Attach(dict.get(), ParseExpression());
    ExpectOperator(":");
    Attach(dict.get(), ParseExpression());
    if (!AtOperator("}")) ExpectOperator(",");
  }
  ExpectOperator("}");
  return dict;
}

ExprPtr ExprParser::ParsePostfix(ExprPtr expr) {
  while (ok()) {
    if (AtOperator(".") || AtOperator("[")) {
      expr = ParseSubscript(std::move(expr));
    } else if (AtOperator("(")) {
      expr = ParseCall(std::move(expr));
    } else {
      break;
    }
  }
  return expr;
}

ExprPtr ExprParser::ParseFiltersAndTests(ExprPtr expr) {
  while (ok()) {
    if (AtOperator("|")) {
      expr = ParseFilters(std::move(expr));
    } else if (AtName("is")) {
      expr = ParseTest(std::move(expr));
    } else if (AtOperator("(")) {
      expr = ParseCall(std::move(expr));
    } else {
      break;
    }
  }
  return expr;
}

ExprPtr ExprParser::ParseSubscript(ExprPtr expr) {
  if (SkipOperator(".")) {
    if (At(TokenKind::kName)) {
      ExprPtr attribute = Make(ExprKind::kAttribute, ExpectName());
      Attach(attribute.get(), std::move(expr));
      return attribute;
    }
    ExprPtr index = Make(ExprKind::kConstant);
    index->constant = Value::Of(current().integer);
    Expect(TokenKind::kInteger, "a name or number");
    return Binary(ExprKind::kItem, "", std::move(expr), std::move(index));
  }
  ExpectOperator("[");
  ExprPtr start = AtOperator(":") ? nullptr : ParseExpression();
  if (AtOperator(":")) return ParseSlice(std::move(expr), std::move(start));
  if (AtOperator(",")) {
    FailUnsupported("a subscript with a comma");
    return nullptr;
  }
  ExpectOperator("]");
  return Binary(ExprKind::kItem, "", std::move(expr), std::move(start));
}

ExprPtr ExprParser::ParseSlice(ExprPtr expr, ExprPtr start) {
  ExprPtr slice = Make(ExprKind::kSlice);
  Attach(slice.get(), std::move(expr));
  Attach(slice.get(), std::move(start));
  for (int bound = 0; bound < 2; ++bound) {
    const bool given = SkipOperator(":") && !AtOperator(":") && !AtOperator("]");
    Attach(slice.get(), given ? ParseExpression() : nullptr);
  }
  ExpectOperator("]");
  return slice;
}

void ExprParser::ParseArguments(Expr* call) {
  ExpectOperator("(");
  while (ok() && !AtOperator(")")) {
    if (AtOperator("*") || AtOperator("**")) return FailUnsupported("unpacking of arguments");
    if (At(TokenKind::kName) && Ahead().kind == TokenKind::kOperator && Ahead().text == "=") {
      std::string name = ExpectName();
      Next();
      for (const auto& keyword : call->keywords) {
        if (keyword.first == name) Fail("keyword argument '" + name + "' is repeated");
      }
      ExprPtr value = ParseExpression();
      if (!ok()) return;
      call->depth = std::max(call->depth, value->depth + 1);
      call->keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (!call->keywords.empty()) return Fail("an argument follows a keyword argument");
      Attach(call, ParseExpression());
    }
    if (!AtOperator(")")) ExpectOperator(",");
  }
  ExpectOperator(")");
}

ExprPtr ExprParser::ParseCall(ExprPtr callee) {
  if (!ok()) return nullptr;
  CheckCallee(*callee);
  ExprPtr call = Make(ExprKind::kCall);
  Attach(call.get(), std::move(callee));
  ParseArguments(call.get());
  return call;
}

ExprPtr ExprParser::ParseFilters(ExprPtr operand, bool without_first_bar) {
  while (ok() && (std::exchange(without_first_bar, false) || SkipOperator("|"))) {
    ExprPtr filter = Make(ExprKind::kFilter, ExpectName());
    Attach(filter.get(), std::move(operand));
    if (AtOperator("(")) ParseArguments(filter.get());
    if (ok()) CheckFilter(*filter);
    operand = std::move(filter);
  }
  return operand;
}

ExprPtr ExprParser::ParseTest(ExprPtr expr) {
  Next();
  const bool negated = SkipName("not");
  ExprPtr test = Make(ExprKind::kTest, ExpectName());
  Attach(test.get(), std::move(expr));
  const bool takes_argument =
      (At(TokenKind::kName) && !AtName("else") && !AtName("or") && !AtName("and")) ||
      At(TokenKind::kString) || At(TokenKind::kInteger) || At(TokenKind::kFloat) ||
      AtOperator("[") || AtOperator("{");
  if (AtOperator("(")) {
    ParseArguments(test.get());
  } else if (takes_argument) {
    if (AtName("is")) Fail("tests cannot be chained with is");
    Attach(test.get(), ParsePostfix(ParsePrimary()));
  }
  if (ok()) CheckTest(*test);
  if (!negated) return test;
  ExprPtr negation = Make(ExprKind::kNot);
  Attach(negation.get(), std::move(test));
  return negation;
}

Target ExprParser::ParseTargetItem(bool with_namespace) {
  Target target;
  if (++nesting_ > kMaxDepth)
    FailUnsupported("a target nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (ok() && SkipOperator("(")) {
    target = ParseTarget(with_namespace);
    ExpectOperator(")");
  } else {
    target.name = ExpectName();
    for (const std::string_view constant :
         {"true", "false", "none", "True", "False", "None", "loop"}) {
      if (target.name == constant) Fail("cannot assign to '" + target.name + "'");
    }
    CheckName(target.name);
    if (with_namespace && SkipOperator(".")) target.attribute = ExpectName();
  }
  --nesting_;
  return target;
}

Target ExprParser::ParseTarget(bool with_namespace) {
  Target first = ParseTargetItem(with_namespace);
  if (!AtOperator(",")) return first;
  Target tuple;
  tuple.items.push_back(std::move(first));
  while (ok() && SkipOperator(",")) {
    if (AtTupleEnd() || AtName("in") || AtOperator("=")) break;
    tuple.items.push_back(ParseTargetItem(with_namespace));
  }
  return tuple;
}

void ExprParser::CheckName(const std::string& name) {
  for (const std::string_view unsupported : kUnsupportedNames) {
    if (name == unsupported) FailUnsupported("name '" + name + "'");
  }
}

// Checks that the callee is the name of a function or macro, or a method.
void ExprParser::CheckCallee(const Expr& callee) {
  if (callee.kind == ExprKind::kName && callee.name == "loop") {
    FailUnsupported("a recursive loop");
  } else if (callee.kind == ExprKind::kAttribute) {
    if (!IsMethod(callee.name)) FailUnsupported("method '" + callee.name + "'");
  }
}

void ExprParser::CheckFilter(const Expr& filter) {
  if (!IsFilter(filter.name)) return FailUnsupported("filter '" + filter.name + "'");
  // These filters apply another filter or test, which an argument names. The parser must know the
  // name.
  const bool by_attribute = filter.name == "selectattr" || filter.name == "rejectattr";
  const bool selects = by_attribute || filter.name == "select" || filter.name == "reject";
  const size_t position = by_attribute ? 2 : 1;
  if ((!selects && filter.name != "map") || filter.operands.size() <= position) return;
  const Expr& name = *filter.operands[position];
  if (name.kind != ExprKind::kConstant || !name.constant.Is(Kind::kString)) {
    return FailUnsupported("filter '" + filter.name + "' with a computed name");
  }
  const std::string& text = name.constant.string();
  if (selects && !IsTest(text)) FailUnsupported("test '" + text + "'");
  if (!selects && !IsFilter(text)) FailUnsupported("filter '" + text + "'");
}

void ExprParser::CheckTest(const Expr& test) {
  if (!IsTest(test.name)) FailUnsupported("test '" + test.name + "'");
}

}  // namespace skein::jinja
