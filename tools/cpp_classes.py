"""Reads classes off C++ sources in clang-format's layout: their data members and their functions.

A tool for tools/check_style.py and tools/house_sizes.py, not a parser of C++: it counts what a reader
counts. Deleted and defaulted functions, constants (`static constexpr`), friends and aliases do not
count. Nested types are classes of their own.
"""
import re
from dataclasses import dataclass

LITERAL = re.compile(r'R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
TOKEN_OR_COMMENT = re.compile(
    r'R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
    r"|//[^\n]*|/\*.*?\*/", re.S)
HEAD = re.compile(r"\b(class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*"
                  r"([A-Za-z_]\w*(?:<[^;{}]*>)?(?:::\w+)*)?\s*(?:final\s*)?(?::[^;{}]*)?\{")
NOISE = re.compile(r"\[\[[^\]]*\]\]|\balignas\s*\([^()]*\)|\b[A-Z][A-Z0-9_]+\s*\([^()]*\)|"
                   r"\b(?:public|private|protected)\s*:")
NOT_COUNTED = re.compile(r"^\s*(?:using|typedef|friend|static_assert|enum|static\s+constexpr|"
                         r"constexpr\s+static|static\s+inline\s+constexpr)\b")
REMOVED = re.compile(r"=\s*(?:delete|default)\s*$")


@dataclass
class CppClass:
    name: str
    line: int  # of its head, from 1
    members: int
    methods: int


def without_comments(text):
    """The text with literals and comments blanked, newlines kept."""
    def blank(match):
        found = match.group(0)
        newlines = "\n" * found.count("\n")
        return newlines or " " if found.startswith(("//", "/*")) else '""' + newlines
    text = TOKEN_OR_COMMENT.sub(blank, text)
    text = re.sub(r"\\\n", " \n", text)
    return re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)


def closing(text, start):
    """The position of the `}` that closes the `{` at `start`."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return len(text) - 1


def statements(body):
    """The statements of a class body. Blocks are emptied; nested types are dropped, but for what
    they declare behind their `}`."""
    found, text, position = [], "", 0
    while position < len(body):
        char = body[position]
        if char == "{":
            end = closing(body, position)
            head = text.strip()
            position = end + 1
            rest = re.match(r"\s*([^;{}]*);", body[position:])
            if re.search(r"\b(?:class|struct|union|enum)\b[^()=]*$", NOISE.sub(" ", head)):
                declared = rest.group(1).strip() if rest else ""
                if declared:
                    found.append("T " + declared)
                text, position = "", position + (rest.end() if rest else 0)
            elif is_function(head) and not re.match(r"\s*[,{]", body[position:]):
                found.append(head + " {}")  # its body; in front of a `,` or `{` it is an initializer
                text = ""
                position += len(re.match(r"\s*;?", body[position:]).group(0))
            else:
                text += "{}"
            continue
        if char == ";":
            found.append(text.strip())
            text = ""
        else:
            text += char
        position += 1
    return [s for s in (NOISE.sub(" ", s).strip() for s in found) if s]


def without_angles(text):
    """The text without template arguments."""
    text = re.sub(r"operator\s*(?:<=>|<<|>>|<=|>=|<|>|->)", "operator_", text)
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"<[^<>]*>", " ", text)
    return text


def is_function(statement):
    text = without_angles(NOISE.sub(" ", statement))
    if re.search(r"\boperator\b|\boperator_", text):
        return True
    declared = re.split(r"=(?!=)|\{", text)[0]
    return "(" in declared and not re.search(r"\(\s*\*[^()]*\)\s*\(", declared)


def declarators(statement):
    """How many variables a statement declares."""
    text = re.sub(r"\([^()]*\)|\{[^{}]*\}", "", without_angles(statement))
    return 1 + text.count(",")


def classes(text):
    """Each class with a body in this source."""
    text = without_comments(text)
    found = []
    for match in HEAD.finditer(text):
        before = text[:match.start()].rstrip()
        if before.endswith("enum") or before.endswith("<") or not match.group(2):
            continue
        start = match.end() - 1
        members = methods = 0
        for statement in statements(text[start + 1:closing(text, start)]):
            if NOT_COUNTED.match(re.sub(r"^template\s*<[^{]*?>\s*(?=using|friend)", "", statement)):
                continue
            if is_function(statement):
                methods += 0 if REMOVED.search(statement) else 1
            else:
                members += declarators(statement)
        found.append(CppClass(match.group(2), text.count("\n", 0, match.start()) + 1, members, methods))
    return found


DEFINITION = re.compile(r"^(?:[A-Za-z_~].*?[\s*&])?([A-Z]\w*)(?:<[^()]*?>)?::(?:~?\w+|operator[^(\s]+)\(", re.M)


def implemented(text):
    """The names of the classes whose functions this source defines outside of their bodies."""
    text = without_comments(text)
    names = set()
    for match in DEFINITION.finditer(text):
        line = match.group(0)
        if line.startswith(("return", "using", "static_assert", "else")) or "=" in line:
            continue
        # A definition's parameters end in front of a `{`, a `:` or a qualifier, never of a `;`.
        position, depth = match.end() - 1, 0
        while position < len(text):
            depth += {"(": 1, ")": -1}.get(text[position], 0)
            if depth == 0:
                break
            position += 1
        behind = re.match(r"[^;{]*", text[position + 1:]).end() + position + 1
        if behind < len(text) and text[behind] == "{":
            names.add(match.group(1))
    return names


def self_check():
    text = """
class Parts final : public Base<int, bool> {
 public:
  explicit Parts(int a) : a_(a), b_{a} { Run(); }  // counts { as nothing
  explicit Parts(const int* b) : a_(*b), b_(*b) {}
  Parts(const Parts&) = delete;
  ~Parts() override = default;
  static Result<int> Make(std::function<void(int)> f);
  bool empty() const { return a_ == 0; }
  auto operator<=>(const Parts&) const { return 0; }
  void Each(const std::vector<int>& rows,
            int last) const;
  struct Row {
    int x = 0, y = F(1, 2);
    std::map<int, bool> z;
  };
  using Rows = std::vector<Row>;
  friend class Other;
  template <typename T>
  void Visit(T&& t) {
    t();
  }

 private:
  enum class Kind { kOne, kTwo };
  static constexpr int kMax = 3;
  int a_ = F(1);
  int b_{G(2)};
  const char* text_ = "class Fake { int x; }";
  std::function<void(int)> f_;
  void (*raw_)(int) = nullptr;
  std::array<int, 3> rows_ SKEIN_GUARDED_BY(mutex_);
  struct { int q; } inner_;
};
"""
    found = {c.name: c for c in classes(text)}
    assert set(found) == {"Parts", "Row"}, found
    assert (found["Parts"].members, found["Parts"].methods) == (7, 7), found["Parts"]
    assert (found["Row"].members, found["Row"].methods) == (3, 0), found["Row"]
    assert found["Parts"].line == 2 and found["Row"].line == 13, found
    source = """
Parts::Parts(int a)
    : a_(a) {
}
Result<int> Parts::Make(std::function<void(int)> f) {
  return Other::Make(f);
}
int x = Third::F(1);
"""
    assert implemented(source) == {"Parts"}, implemented(source)
