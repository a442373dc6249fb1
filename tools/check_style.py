#!/usr/bin/env python3
"""Fails on a source file that breaks a rule of the house which a formatter cannot mend.

    python3 tools/check_style.py [REPOSITORY]

Files have at most 600 lines and lines at most 100 columns; functions have at most 70 lines; headers
start with `#pragma once` and open no namespace to their readers; nothing is left as a note to do
later. Sources are the .h, .cc, .inc and .cu files of include/, src/, bench/ and tests/.

The length of a function is read off the layout that clang-format gives: from a `}` alone on its line
(types and namespaces end otherwise) up to the nearest line that is indented no deeper.
"""
import pathlib
import re
import sys

MAX_FILE_LINES = 600
MAX_LINE_COLUMNS = 100
MAX_FUNCTION_LINES = 70
FOLDERS = ("include", "src", "bench", "tests")
SUFFIXES = (".h", ".cc", ".inc", ".cu")
LATER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
CLOSES = re.compile(r"^( *)\}$")


def long_functions(lines):
    """(first line's number, length) of each function that is too long; a block in one counts as it."""
    found = []
    for end, line in enumerate(lines):
        closes = CLOSES.match(line)
        if not closes:
            continue
        column = len(closes.group(1))
        start = end - 1
        while start > 0 and not starts_block(lines[start], column):
            start -= 1
        if end - start + 1 > MAX_FUNCTION_LINES:
            found = [f for f in found if f[0] < start] + [(start, end)]
    return [(start + 1, end - start + 1) for start, end in found]


def starts_block(line, column):
    """Whether a line above a `}` in this column is the first of what the brace closes."""
    text = line.lstrip()
    return text != "" and not text.startswith(("#", "}")) and len(line) - len(text) <= column


def check_text(name, text):
    """What is wrong with a file of this name and text, as lines for the reader."""
    lines = text.splitlines()
    errors = []
    if len(lines) > MAX_FILE_LINES:
        errors.append(f"{name}: {len(lines)} lines; at most {MAX_FILE_LINES}")
    is_header = name.endswith(".h")
    if is_header and "#pragma once" not in lines:
        errors.append(f"{name}: a header without #pragma once")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_COLUMNS:
            errors.append(f"{name}:{number}: {len(line)} columns; at most {MAX_LINE_COLUMNS}")
        if LATER.search(line):
            errors.append(f"{name}:{number}: a note to do later: do it, or open an issue")
        if is_header and USING_NAMESPACE.match(line):
            errors.append(f"{name}:{number}: using namespace in a header")
    for number, length in long_functions(lines):
        errors.append(f"{name}:{number}: a function of {length} lines; at most {MAX_FUNCTION_LINES}")
    return errors


def self_check():
    """Each rule finds what it is for, and lets the largest allowed thing pass."""
    head = "#pragma once\n"
    body = "  x();\n"

    def function(lines):
        return "void F(int a,\n       int b) {\n" + body * (lines - 3) + "}\n"

    def method(lines):
        return "class C {\n  void F() {\n" + ("  " + body) * (lines - 2) + "  }\n};\n"

    good = [head, head + "x\n" * 599, head + "x" * 100, head + function(70), head + method(70),
            head + "struct S {\n" + body * 200 + "};\n",
            head + "namespace a {\n" + body * 200 + "}  // namespace a\n"]
    bad = ["", head + "x\n" * 600, head + "x" * 101, head + function(71), head + method(71),
           head + "// TO" + "DO: more\n", head + "using namespace std;\n"]
    for text in good:
        assert not check_text("a.h", text), (text[:80], check_text("a.h", text))
    for text in bad:
        assert len(check_text("a.h", text)) == 1, (text[:80], check_text("a.h", text))


def main():
    self_check()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    errors, checked = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                errors += check_text(str(path.relative_to(root)), path.read_text())
                checked += 1
    print("\n".join(errors) or f"{checked} files keep the rules")
    return 1 if errors or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
