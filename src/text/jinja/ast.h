#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

enum class ExprKind {
  kConstant,     // constant
  kName,         // name
  kList,         // operands
  kTuple,        // operands
  kDict,         // operands: key, value, key, value, ...
  kAttribute,    // operands[0].name
  kItem,         // operands[0][operands[1]]
  kSlice,        // operands[0][operands[1]:operands[2]:operands[3]]; null if left out
  kCall,         // operands[0](operands[1], ..., keywords)
  kFilter,       // operands[0] | name(operands[1], ..., keywords); operands[0] is null for the text
                 // of a block
  kTest,         // operands[0] is name(operands[1], ..., keywords)
  kNot,          // not operands[0]
  kNegative,     // -operands[0]
  kBinary,       // operands[0] name operands[1], name one of + - * %
  kConcat,       // operands[0] ~ operands[1] ~ ...
  kAnd,          // operands[0] and operands[1]
  kOr,           // operands[0] or operands[1]
  kCompare,      // operands[0] comparators[0] operands[1] comparators[1] operands[2] ...
  kConditional,  // operands[1] if operands[0] else operands[2]; null if there is no else
};

// An expression. The comment at its kind names the members in use.
struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;  // the depth of the tree below
  Value constant;
  std::string name;
  std::vector<std::unique_ptr<Expr>> operands;
  std::vector<std::pair<std::string, std::unique_ptr<Expr>>> keywords;
  std::vector<std::string> comparators;  // == != < <= > >= in, "not in"
};
using ExprPtr = std::unique_ptr<Expr>;

// The target of an assignment: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  std::string name;       // empty for a tuple
  std::string attribute;  // of the namespace `name`; empty for a plain name
  std::vector<Target> items;
};

enum class StmtKind {
  kText,      // text
  kPrint,     // value
  kIf,        // branches
  kFor,       // for target in value if condition: body, else: otherwise
  kSet,       // target = value
  kSetBlock,  // target = body, through `value` (a chain of filters) if it is not null
  kFilter,    // body through `value`
  kScope,     // body in a scope of its own ({% generation %})
  kMacro,     // text(parameters): body
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

// A statement. The comment at its kind names the members in use.
struct Stmt {
  struct Branch {
    ExprPtr condition;  // null for else
    Body body;
  };

  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;
  Target target;
  ExprPtr value;
  ExprPtr condition;
  Body body;
  Body otherwise;
  std::vector<Branch> branches;
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // the default is null if there is none
};

}  // namespace skein::jinja
