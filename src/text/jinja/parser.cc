#include "text/jinja/parser.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "text/jinja/expr_parser.h"
#include "text/jinja/lexer.h"

namespace skein::jinja {
namespace {

using StmtPtr = std::unique_ptr<Stmt>;
using EndNames = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : in_(std::move(tokens)) {}

  Result<Body> Run() {
    Body body = ParseBody({});
    if (!in_.ok()) return in_.status();
    return body;
  }

 private:
  StmtPtr Make(StmtKind kind) const {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = in_.current().line;
    return stmt;
  }

  // Parses statements up to a tag with one of the names `ends`, which becomes the current token.
  // Without names, parses up to the end of the template.
  Body ParseBody(EndNames ends) {
    Body body;
    if (++nesting_ > kMaxNesting) {
      in_.FailUnsupported("tags nested deeper than " + std::to_string(kMaxNesting) + " levels");
    }
    while (in_.ok()) {
      if (in_.At(TokenKind::kData)) {
        StmtPtr text = Make(StmtKind::kText);
        text->text = in_.current().text;
        in_.Next();
        body.push_back(std::move(text));
      } else if (in_.At(TokenKind::kVariableBegin)) {
        in_.Next();
        StmtPtr print = Make(StmtKind::kPrint);
        print->value = in_.ParseTuple();
        in_.Expect(TokenKind::kVariableEnd, "end of print statement");
        body.push_back(std::move(print));
      } else if (in_.At(TokenKind::kBlockBegin)) {
        in_.Next();
        if (AtOneOf(ends)) break;
        if (StmtPtr stmt = ParseTag(); stmt != nullptr) body.push_back(std::move(stmt));
      } else {
        if (ends.size() > 0)
          in_.Fail("the template ends before '" + std::string(*ends.begin()) + "'");
        break;
      }
    }
    --nesting_;
    return body;
  }

  bool AtOneOf(EndNames names) const {
    for (const std::string_view name : names) {
      if (in_.AtName(name)) return true;
    }
    return false;
  }

  // Parses the body of a tag, after the inside of the tag.
  Body ParseInner(EndNames ends) {
    in_.SkipOperator(":");
    ExpectTagEnd();
    return ParseBody(ends);
  }
  // Parses the body of a tag and skips the end tag.
  Body ParseToEnd(std::string_view end) {
    Body body = ParseInner({end});
    in_.Next();
    ExpectTagEnd();
    return body;
  }
  void ExpectTagEnd() { in_.Expect(TokenKind::kBlockEnd, "end of statement block"); }

  StmtPtr ParseTag() {
    if (!in_.At(TokenKind::kName)) {
      in_.Fail("tag name expected");
      return nullptr;
    }
    const std::string name = in_.ExpectName();
    if (name == "if") return ParseIf();
    if (name == "for") return ParseFor();
    if (name == "set") return ParseSet();
    if (name == "macro") return ParseMacro();
    if (name == "filter") return ParseFilterBlock();
    if (name == "generation") return ParseGeneration();
    if (name == "break" || name == "continue") return ParseJump(name);
    for (const std::string_view known : {"autoescape", "block", "call", "do", "extends", "from",
                                         "import", "include", "trans", "debug", "with", "print"}) {
      if (name == known) in_.FailUnsupported("tag '" + name + "'");
    }
    in_.Fail("unknown tag '" + name + "'");
    return nullptr;
  }

  StmtPtr ParseIf() {
    StmtPtr stmt = Make(StmtKind::kIf);
    while (in_.ok()) {
      ExprPtr condition = in_.ParseTuple(false);
      Body body = ParseInner({"elif", "else", "endif"});
      stmt->branches.push_back({std::move(condition), std::move(body)});
      if (!in_.SkipName("elif")) break;
    }
    if (in_.SkipName("else")) {
      stmt->branches.push_back({nullptr, ParseInner({"endif"})});
    }
    in_.Next();
    ExpectTagEnd();
    return stmt;
  }

  StmtPtr ParseFor() {
    StmtPtr stmt = Make(StmtKind::kFor);
    stmt->target = in_.ParseTarget(false);
    if (!in_.SkipName("in")) in_.Fail("expected 'in' in a for tag");
    stmt->value = in_.ParseTuple(false);
    if (in_.SkipName("if")) stmt->condition = in_.ParseExpression();
    if (in_.AtName("recursive")) in_.FailUnsupported("a recursive loop");
    if (in_.ok() && stmt->condition != nullptr && Mentions(*stmt->condition, "loop")) {
      in_.FailUnsupported("'loop' in the condition of a for tag");
    }
    ++loops_;
    stmt->body = ParseInner({"endfor", "else"});
    --loops_;
    if (in_.SkipName("else")) stmt->otherwise = ParseInner({"endfor"});
    in_.Next();
    ExpectTagEnd();
    return stmt;
  }

  static bool Mentions(const Expr& expr, std::string_view name) {
    if (expr.kind == ExprKind::kName && expr.name == name) return true;
    for (const auto& operand : expr.operands) {
      if (operand != nullptr && Mentions(*operand, name)) return true;
    }
    for (const auto& keyword : expr.keywords) {
      if (Mentions(*keyword.second, name)) return true;
    }
    return false;
  }

  StmtPtr ParseSet() {
    StmtPtr stmt = Make(StmtKind::kSet);
    stmt->target = in_.ParseTarget(true);
    if (in_.SkipOperator("=")) {
      stmt->value = in_.ParseTuple();
      ExpectTagEnd();
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    stmt->value = in_.ParseFilters(nullptr);
    stmt->body = ParseToEnd("endset");
    return stmt;
  }

  StmtPtr ParseMacro() {
    StmtPtr stmt = Make(StmtKind::kMacro);
    stmt->text = in_.ExpectName();
    in_.ExpectOperator("(");
    while (in_.ok() && !in_.AtOperator(")")) {
      std::string name = in_.ExpectName();
      for (const auto& parameter : stmt->parameters) {
        if (parameter.first == name) in_.Fail("parameter '" + name + "' is repeated");
      }
      ExprPtr fallback = in_.SkipOperator("=") ? in_.ParseExpression() : nullptr;
      if (fallback == nullptr && !stmt->parameters.empty() &&
          stmt->parameters.back().second != nullptr) {
        in_.Fail("parameter '" + name + "' without default follows one with default");
      }
      stmt->parameters.emplace_back(std::move(name), std::move(fallback));
      if (!in_.AtOperator(")")) in_.ExpectOperator(",");
    }
    in_.ExpectOperator(")");
    stmt->body = ParseFunctionBody("endmacro");
    return stmt;
  }

  // Parses a body that Jinja turns into a function. A break or continue in it cannot leave a loop
  // outside the function.
  Body ParseFunctionBody(std::string_view end) {
    const int loops_outside = std::exchange(loops_, 0);
    Body body = ParseToEnd(end);
    loops_ = loops_outside;
    return body;
  }

  StmtPtr ParseGeneration() {
    StmtPtr stmt = Make(StmtKind::kScope);
    stmt->body = ParseFunctionBody("endgeneration");
    return stmt;
  }

  // Parses {% filter name | name %}, where no bar precedes the first name.
  StmtPtr ParseFilterBlock() {
    StmtPtr stmt = Make(StmtKind::kFilter);
    stmt->value = in_.ParseFilters(nullptr, true);
    stmt->body = ParseToEnd("endfilter");
    return stmt;
  }

  StmtPtr ParseJump(const std::string& name) {
    StmtPtr stmt = Make(name == "break" ? StmtKind::kBreak : StmtKind::kContinue);
    if (loops_ == 0) in_.Fail("'" + name + "' outside a loop");
    ExpectTagEnd();
    return stmt;
  }

  static constexpr int kMaxNesting = 60;

  ExprParser in_;
  int nesting_ = 0;
  int loops_ = 0;  // number of loops around the current tag within its function
};

}  // namespace

Result<Body> Parse(std::string_view source) {
  SKEIN_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace skein::jinja
